import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'

const width = 8
/** More levels or groups than any organization nests: a server that reports more is broken. */
const maxLevels = 64
const maxGroups = 5000

interface Above<T> {
  readonly group: T
  /** The other group is a direct member of it. */
  readonly direct: boolean
}

interface GroupsAbove<T> {
  /** Every group that contains this start group; each once, and never the group itself. */
  of(group: T): readonly Above<T>[]
}

/**
 * Walks up from groups to the groups that contain them, for systems that only know the direct parents of a group. Reads
 * the parents of each group once, so cycles end. Throws TARGET_FAILED above the limits.
 */
export async function groupsAbove<T>(
  starts: readonly T[],
  keyOf: (group: T) => string,
  parentsOf: (group: T) => Promise<readonly T[]>,
): Promise<GroupsAbove<T>> {
  const parents = new Map<string, readonly T[]>()
  const asked = new Set<string>()
  const unasked = (groups: readonly T[]): T[] =>
    groups.filter((group) => {
      const key = keyOf(group)
      return !asked.has(key) && asked.add(key)
    })
  let level = unasked(starts)
  for (let levels = 0; level.length > 0; levels++) {
    if (levels > maxLevels || asked.size > maxGroups) {
      const limit = levels > maxLevels ? `deeper than ${maxLevels} levels` : `in more than ${maxGroups} others`
      throw new GatewayError('TARGET_FAILED', `groups are nested ${limit}`, {
        publicText: `Groups are nested ${limit}, which is more than can be read.`,
      })
    }
    const found = await inParallel(level, width, parentsOf)
    level.forEach((group, i) => void parents.set(keyOf(group), found[i] ?? []))
    level = unasked(found.flat())
  }
  return {
    of(group) {
      const direct = parents.get(keyOf(group)) ?? []
      const all = new Map(direct.map((parent) => [keyOf(parent), parent]))
      // The loop also visits the entries that it adds.
      for (const [key] of all) for (const parent of parents.get(key) ?? []) all.set(keyOf(parent), parent)
      all.delete(keyOf(group))
      const directKeys = new Set(direct.map(keyOf))
      return Array.from(all, ([key, one]) => ({ group: one, direct: directKeys.has(key) }))
    },
  }
}

export interface GroupWalk<T> {
  keyOf(group: T): string
  nameOf(group: T): string
  parentsOf(group: T): Promise<readonly T[]>
}

/** Throws CONFLICT if the group would contain itself through one of these members. */
export async function refuseCircle<T>(group: T, members: readonly T[], walk: GroupWalk<T>): Promise<void> {
  if (members.length === 0) return
  const { keyOf, nameOf } = walk
  const above = await groupsAbove([group], keyOf, walk.parentsOf)
  const containing = new Set(above.of(group).map((one) => keyOf(one.group)))
  const isItself = (member: T): boolean => keyOf(member) === keyOf(group)
  const member = members.find((one) => isItself(one) || containing.has(keyOf(one)))
  if (member === undefined) return
  const how = isItself(member) ? '' : `: "${nameOf(member)}" already contains it`
  throw new GatewayError('CONFLICT', `the group "${nameOf(group)}" would contain itself${how}`, {
    publicText: `The group "${nameOf(group)}" would contain itself${how}.`,
  })
}

/** NOT_FOUND for a container or member group. */
export const absentGroup = (name: string, cause?: unknown): GatewayError =>
  new GatewayError('NOT_FOUND', `there is no group "${name.slice(0, 100)}"`, {
    cause,
    publicText: `There is no group "${name.slice(0, 100)}".`,
  })
