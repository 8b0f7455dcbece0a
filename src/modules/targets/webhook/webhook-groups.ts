import { Attributes } from '#identity/attributes.ts'
import { groupChanges } from '#identity/entry-changes.ts'
import type { Group } from '#identity/group.ts'
import {
  type GroupStore,
  noGroup,
  reconcileGroups,
  type StoredGroup,
} from '#modules/shared/targets/group-reconciler.ts'
import { inQueue } from '#modules/shared/targets/user-reconciler.ts'
import type { GroupTarget, Target, TargetChange } from '#sdk/target/target.ts'
import { settle } from './api-caller.ts'
import { type BodyValues, refusedValue } from './templates.ts'
import type { WebhookApi } from './webhook-api.ts'

export function webhookGroups(api: WebhookApi): Omit<GroupTarget, keyof Target> {
  const { operations } = api.config

  /** Throws BAD_REQUEST for an attribute that no place of the request carries. */
  function requirePlaces(operation: 'createGroup' | 'updateGroup', names: readonly string[]): void {
    const places = new Set(operations[operation]?.body?.places.map(({ name }) => name.toLowerCase()))
    const odd = names.find((name) => !places.has(name.toLowerCase()))
    if (odd !== undefined) throw refusedValue(odd, `has no place in ${operation}`)
  }

  /** A change of nothing, which only asks for a new version, sends the group as it is. */
  function updateBody(wanted: Group, before: Group, changes: readonly TargetChange[]): BodyValues {
    const values = valuesOf(wanted, before)
    if (operations.updateGroup?.request.method !== 'PATCH' || changes.length === 0) return { values }
    const names = new Set(
      changes.map(({ subject, attribute }) => (subject === 'entry' ? 'group' : attribute.toLowerCase())),
    )
    return { values, changed: (name) => alwaysSent.has(name) || names.has(name.toLowerCase()) }
  }

  const store: GroupStore<StoredGroup> = {
    touches: true,
    read: async (name, request) => {
      const group = await api.findGroup(name, request)
      return group && { group }
    },
    create: async (name, attributes, { changes, request, isDone }) => {
      requirePlaces('createGroup', attributes.names())
      const body = { values: valuesOf({ id: '', name, members: [], attributes }) }
      await settle(async () => {
        await api.write('createGroup', { group: name }, { body, request })
      }, isDone)
      return changes
    },
    write: async ({ group: before }, { newName, attributes, changes, request }) => {
      requirePlaces(
        'updateGroup',
        changes.flatMap(({ subject, attribute }) => (subject === 'attribute' ? [attribute] : [])),
      )
      const values = before.attributes?.clone() ?? new Attributes()
      for (const [name, list] of attributes) values.set(name, list)
      const body = updateBody({ ...before, name: newName, attributes: values }, before, changes)
      await settle(
        async () => {
          if (!(await api.write('updateGroup', placesOf(before), { body, request }))) throw noGroup(before.name)
        },
        async () => {
          const now = await api.findGroup(newName, request)
          return now !== undefined && groupChanges(now, newName, attributes).length === 0
        },
      )
      return changes
    },
    delete: async ({ group }, { changes, expectedVersion, request }) => {
      await settle(
        async () => {
          await api.write('deleteGroup', { ...placesOf(group), version: expectedVersion }, { request })
        },
        async () => (await api.findGroup(group.name, request)) === undefined,
      )
      return changes
    },
  }
  return { findGroup: (name) => api.findGroup(name), ...reconcileGroups(inQueue(store)) }
}

/** These identify the group, and never change. */
const alwaysSent = new Set(['groupId', 'version'])

const placesOf = ({ name, id, version }: Group) => ({ group: name, groupId: id, version })

const valuesOf =
  (wanted: Group, before?: Group) =>
  (name: string): readonly string[] => {
    if (name === 'group') return [wanted.name]
    if (name === 'groupId') return before === undefined ? [] : [before.id]
    if (name === 'version') return before?.version === undefined ? [] : [before.version]
    return wanted.attributes?.values(name) ?? []
  }
