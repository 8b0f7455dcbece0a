import { Attributes } from '#identity/attributes.ts'
import { entryChange, groupChanges, newGroupChanges } from '#identity/entry-changes.ts'
import type { Group } from '#identity/group.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { GroupTarget, TargetChange, TargetRequest } from '#sdk/target/target.ts'
import { type Exclusively, hasCode, report, requireVersion } from './user-reconciler.ts'

/** A group as read, with the data that the target needs to write it again. */
export interface StoredGroup {
  readonly group: Group
}

export interface GroupWrite {
  readonly newName: string
  /** All values that these attributes have afterwards. */
  readonly attributes: ReadonlyMap<string, readonly string[]>
  readonly changes: readonly TargetChange[]
  readonly expectedVersion: string | undefined
  readonly request: TargetRequest
}

/** Changes that were made and are not in the audit yet. */
type Unreported = readonly TargetChange[]

/** How a target reads and writes one group; see `UserStore`. */
export interface GroupStore<S extends StoredGroup> {
  /** Without members, which may be many. */
  read(name: string, request: TargetRequest): Promise<S | undefined>
  /** `isDone` reads the group again, and returns whether it is as requested. */
  create(
    name: string,
    attributes: Attributes,
    call: {
      readonly changes: readonly TargetChange[]
      readonly request: TargetRequest
      isDone(): Promise<boolean>
    },
  ): Promise<Unreported>
  write(stored: S, write: GroupWrite): Promise<Unreported>
  delete(
    stored: S,
    call: {
      readonly changes: readonly TargetChange[]
      readonly expectedVersion: string | undefined
      readonly request: TargetRequest
    },
  ): Promise<Unreported>
  /** The values as they will be read back. Throws BAD_REQUEST, naming the attribute, for an unstorable value. */
  accept?(attribute: string, values: readonly string[]): readonly string[]
  /** Whether the group equals the one that a create would make; if absent, whether nothing would change. */
  isSame?(stored: S, name: string, attributes: Attributes): boolean
  /** Whether a group other than this one has the name. By id if absent. */
  isTaken?(name: string, by: S, request: TargetRequest): Promise<boolean>
  /** Removes what an earlier attempt left behind of a group that doesn't exist. */
  cleanUp?(name: string): Promise<void>
  /** An update without changes that expects a version still writes, so that the group gets a new version. */
  readonly touches?: boolean
  /** See `UserStore`. */
  readonly rereadsConflicts?: boolean
  /** The store honors `mustBeNew`. */
  readonly requiresNew?: boolean
}

/** Creates, changes and deletes groups, as `reconcileUsers` does for users. */
export function reconcileGroups<S extends StoredGroup>(
  exclusively: Exclusively<GroupStore<S>>,
): Pick<GroupTarget, 'createGroup' | 'updateGroup' | 'deleteGroup'> {
  return {
    async createGroup(name, values, request, { mustBeNew = false } = {}) {
      let existed = false
      const isSame = (store: GroupStore<S>, stored: S, wanted: Attributes): boolean => {
        if (mustBeNew && store.requiresNew) return false
        return store.isSame?.(stored, name, wanted) ?? groupChanges(stored.group, name, wanted).length === 0
      }
      const create = async (store: GroupStore<S>): Promise<Unreported> => {
        const wanted = Attributes.from(accepted(store, values))
        const found = await store.read(name, request)
        existed = found !== undefined
        if (found !== undefined) return isSame(store, found, wanted) ? [] : nameTaken(name)
        const isDone = async () => {
          const stored = await store.read(name, request)
          return stored !== undefined && isSame(store, stored, wanted)
        }
        return store.create(name, wanted, { changes: newGroupChanges(name, wanted), request, isDone })
      }
      const changes = await exclusively(name, create).catch((error: unknown) => {
        if (existed || !hasCode(error, 'CONFLICT')) throw error
        return exclusively(name, async (store): Promise<Unreported> => {
          const found = store.rereadsConflicts ? await store.read(name, request) : undefined
          if (found === undefined || !isSame(store, found, Attributes.from(accepted(store, values)))) throw error
          return []
        })
      })
      report(changes, request)
    },

    async updateGroup(name, { newName = name, attributes = {}, expectedVersion }, request) {
      const update = async (store: GroupStore<S>): Promise<Unreported> => {
        const wanted = accepted(store, attributes)
        const stored = await store.read(name, request)
        if (stored === undefined) throw noGroup(name)
        requireVersion(stored.group, expectedVersion)
        const changes = groupChanges(stored.group, newName, wanted)
        if (changes.length === 0 && (expectedVersion === undefined || store.touches !== true)) return []
        if (newName !== stored.group.name && (await isTaken(store, newName, stored, request))) nameTaken(newName)
        return store.write(stored, { newName, attributes: wanted, changes, expectedVersion, request })
      }
      report(await exclusively(name, update, expectedVersion), request)
    },

    async deleteGroup(name, request, { expectedVersion } = {}) {
      const remove = async (store: GroupStore<S>): Promise<Unreported> => {
        const stored = await store.read(name, request)
        if (stored === undefined) await store.cleanUp?.(name)
        if (stored === undefined) return []
        requireVersion(stored.group, expectedVersion)
        const changes = [entryChange('entry', 'delete', 'name', stored.group.name)]
        return store.delete(stored, { changes, expectedVersion, request })
      }
      report(await exclusively(name, remove, expectedVersion), request)
    },
  }
}

const accepted = <S extends StoredGroup>(
  store: GroupStore<S>,
  values: Readonly<Record<string, readonly string[]>>,
): ReadonlyMap<string, readonly string[]> =>
  new Map(Object.entries(values).map(([name, list]) => [name, store.accept?.(name, list) ?? list]))

async function isTaken<S extends StoredGroup>(
  store: GroupStore<S>,
  name: string,
  stored: S,
  request: TargetRequest,
): Promise<boolean> {
  if (store.isTaken !== undefined) return store.isTaken(name, stored, request)
  const other = await store.read(name, request)
  return other !== undefined && other.group.id !== stored.group.id
}

function nameTaken(name: string): never {
  throw new GatewayError('CONFLICT', `a group "${name.slice(0, 100)}" already exists`, { keyword: 'uniqueness' })
}

export const noGroup = (name: string, cause?: unknown): GatewayError =>
  new GatewayError('NOT_FOUND', `there is no group "${name.slice(0, 100)}"`, { cause })
