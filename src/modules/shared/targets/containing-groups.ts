import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'

const width = 8
/** More levels or groups than any organization nests: a server that gives more is out of order. */
const maxLevels = 64
const maxGroups = 5000

export interface Above<T> {
  readonly group: T
  /** The other group is a member of it itself, and not only through others. */
  readonly direct: boolean
}

export interface GroupsAbove<T> {
  /** Every group that contains this one, which was one of those to start from; each once, and never the group itself. */
  of(group: T): readonly Above<T>[]
}

/**
 * Walks up from groups to the groups that contain them, for systems that only know who contains a group directly. Each
 * group's parents are asked for once, and groups that contain one another end the walk like any other. Throws
 * TARGET_FAILED where it would take too much.
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
      // A map is walked in the order of its entries, those that are added on the way included.
      for (const [key] of all) for (const parent of parents.get(key) ?? []) all.set(keyOf(parent), parent)
      all.delete(keyOf(group))
      const directKeys = new Set(direct.map(keyOf))
      return Array.from(all, ([key, one]) => ({ group: one, direct: directKeys.has(key) }))
    },
  }
}
