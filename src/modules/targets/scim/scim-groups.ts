import { Attributes } from '#identity/attributes.ts'
import { type GroupStore, noGroup, reconcileGroups } from '#modules/shared/targets/group-reconciler.ts'
import { KeyedQueue } from '#modules/shared/targets/keyed-queue.ts'
import { type Exclusively, hasCode } from '#modules/shared/targets/user-reconciler.ts'
import type { GroupTarget } from '#sdk/target/target.ts'
import { unfit } from './resource-mapping.ts'
import type { GroupLookups } from './scim-lookups.ts'
import {
  changeRequest,
  isUncertain,
  modelOf,
  newResource,
  requiredPath,
  type ScimService,
  type ServiceModel,
  type Stored,
  type StoredGroup,
  send,
} from './scim-service.ts'

const maxAttempts = 5

interface FoundGroup extends StoredGroup {
  readonly group: StoredGroup['entry']
}

/** SCIM does not require that names of groups are unique, so the target checks it. */
export function scimGroups(
  service: ScimService,
  groups: GroupLookups,
): Pick<GroupTarget, 'createGroup' | 'updateGroup' | 'deleteGroup'> {
  const queue = new KeyedQueue()
  /** A change that another writer preceded is decided again, unless it expects a version. */
  const exclusively: Exclusively<GroupStore<FoundGroup>> = (name, work, expectedVersion) =>
    queue.run(name.toLowerCase(), async () => {
      const store = storeOf(service, groups, await modelOf(service))
      for (let attempt = 1; ; attempt++) {
        try {
          return await work(store)
        } catch (error) {
          const isStale = hasCode(error, 'VERSION_MISMATCH') && expectedVersion === undefined
          if (!isStale || attempt >= maxAttempts) throw error
        }
      }
    })
  return reconcileGroups(exclusively)
}

function storeOf(service: ScimService, groups: GroupLookups, model: ServiceModel): GroupStore<FoundGroup> {
  const read = async (name: string): Promise<FoundGroup | undefined> => {
    // Without PATCH the whole group is written, with its members.
    const found = await groups.byName(name, !model.features.patch)
    return found && { ...found, group: found.entry }
  }
  const editsOf = ({ resource }: Pick<Stored<unknown>, 'resource'>, wanted: Attributes, attributes = wanted.names()) =>
    model.groups.edits(resource, wanted, { attributes, addOnly: false })
  return {
    touches: true,
    rereadsConflicts: true,
    read,
    isSame: (stored, name, wanted) => stored.group.name === name && editsOf(stored, wanted).length === 0,
    create: async (name, wanted, { changes, request, isDone }) => {
      checkName(name)
      const edits = editsOf({ resource: {} }, wanted)
      const body = newResource(model.features.groups, { attribute: 'displayName', value: name }, edits)
      try {
        await send(service, { method: 'POST', path: '/Groups', body }, request)
      } catch (error) {
        if (!isUncertain(error) || !(await isDone())) throw error
      }
      return changes
    },
    write: async (stored, { newName, attributes, changes, expectedVersion, request }) => {
      checkName(newName)
      const wanted = Attributes.from(attributes)
      const path = requiredPath(service, '/Groups', stored.group.id)
      const change = (current: FoundGroup) => {
        const edits = editsOf(current, wanted, [...attributes.keys()])
        const isRenamed = current.group.name !== newName
        return { edits, isRenamed, isNothing: edits.length === 0 && !isRenamed }
      }
      const write = async (current: FoundGroup) => {
        const { edits, isRenamed, isNothing } = change(current)
        // Where only the version is expected, writing the same name makes the server compare it.
        const naming = { attribute: 'displayName', value: isRenamed || isNothing ? newName : undefined } as const
        const how = { path, model, schema: model.features.groups }
        await send(service, changeRequest(current, naming, edits, how), request)
      }
      if (change(stored).isNothing && expectedVersion === undefined) return []
      try {
        await write(stored)
      } catch (error) {
        if (!isUncertain(error)) throw error
        const current = (await read(stored.group.name)) ?? (await read(newName))
        if (current === undefined) throw noGroup(stored.group.name, error)
        if (!change(current).isNothing) await write(current)
      }
      return changes
    },
    delete: async ({ group }, { changes, expectedVersion, request }) => {
      const path = requiredPath(service, '/Groups', group.id)
      try {
        await send(service, { method: 'DELETE', path, ifMatch: expectedVersion }, request)
      } catch (error) {
        if (hasCode(error, 'NOT_FOUND')) return []
        if (!isUncertain(error) || (await read(group.name)) !== undefined) throw error
      }
      return changes
    },
  }
}

function checkName(name: string): void {
  if (name === '' || !name.isWellFormed() || name.includes('\0')) {
    throw unfit('displayName', 'it is not a valid group name')
  }
}
