import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { patchSchema } from '#protocols/scim/patch/parse-patch.ts'

/** One change of one resource. */
export interface ResourceChange {
  readonly kind: 'create' | 'patch' | 'put' | 'delete'
  readonly resourceType: 'User' | 'Group'
  readonly id: string
  readonly externalId?: string
  /** The new ETag, if it is known. */
  readonly version?: string
  /** Names of the attributes that changed, as in the schema (an extension's with its URN and a colon); none for delete. */
  readonly attributes: readonly string[]
  /** Those of them that lost their value. */
  readonly cleared?: readonly string[]
  /** The users and groups that joined and left a patched group; absent if some changes still wait. */
  readonly members?: { readonly added: readonly ChangedMember[]; readonly removed: readonly ChangedMember[] }
  /** `active` before and after the change, if known. */
  readonly active?: { readonly before?: boolean; readonly after?: boolean }
}

interface ChangedMember {
  readonly type: 'User' | 'Group'
  readonly id: string
}

export type EventPayload = 'notice' | 'full'

const prefix = 'urn:ietf:params:scim:event:prov'
const activate = `${prefix}:activate`
const deactivate = `${prefix}:deactivate`

/** RFC 9967 4: the events of a service with this payload. With `full`, some patches are sent as a notice. */
export const eventUris = (payload: EventPayload): string[] => [
  ...['create', 'patch', 'put'].map((kind) => `${prefix}:${kind}:${payload}`),
  ...(payload === 'full' ? [`${prefix}:patch:notice`] : []),
  `${prefix}:delete`,
  activate,
  deactivate,
]

/** RFC 9967 2.1: the path below the service's URL, and the owner's name of the resource. */
export const eventSubject = ({ resourceType, id, externalId }: ResourceChange): JsonObject => ({
  format: 'scim',
  uri: `/${resourceType}s/${encodeURIComponent(id)}`,
  ...(externalId === undefined ? {} : { externalId }),
})

/**
 * RFC 9967 2.4: the events of a change with their payloads. With `data` (for a patch the patch, otherwise the resource
 * as a client reads it) they are full; without, they have the names of changed attributes and no values. A deactivation is
 * in the same token as the change that caused it.
 */
export function changeEvents(change: ResourceChange, data?: JsonObject): JsonObject {
  const { kind, attributes, version, active } = change
  if (kind === 'delete') return { [`${prefix}:delete`]: {} }
  const payload = data === undefined ? { attributes: [...attributes] } : { data }
  const uri = `${prefix}:${kind}:${data === undefined ? 'notice' : 'full'}`
  return {
    [uri]: { ...payload, ...(version === undefined ? {} : { version }) },
    ...(active?.after === true && active.before === false ? { [activate]: {} } : {}),
    ...(active?.after === false && active.before !== false && kind !== 'create' ? { [deactivate]: {} } : {}),
  }
}

/**
 * RFC 9967 2.4.2, figure 6: a patch that brings any copy to the current state. It has the current value of each
 * changed attribute, and the members that joined and left. Undefined if a changed value is never returned, or if
 * not every change of members was made.
 */
export function patchMessage(change: ResourceChange, resource: JsonObject): JsonObject | undefined {
  const { attributes, cleared = [], members, resourceType } = change
  const operations: JsonObject[] = []
  for (const path of attributes) {
    if (resourceType === 'Group' && path === 'members') {
      if (members === undefined) return undefined
      continue
    }
    const value = valueAt(resource, path)
    if (value === undefined && !cleared.includes(path)) return undefined
    operations.push(value === undefined ? { op: 'remove', path } : { op: 'replace', path, value })
  }
  const { added = [], removed = [] } = members ?? {}
  for (const { id } of removed) operations.push({ op: 'remove', path: `members[value eq ${JSON.stringify(id)}]` })
  if (added.length > 0) {
    operations.push({ op: 'add', path: 'members', value: added.map(({ id, type }) => ({ value: id, type })) })
  }
  return { schemas: [patchSchema], Operations: operations }
}

/** The attribute that a name of `attributes` is about; an extension's is inside the object of its URN. */
function valueAt(resource: JsonObject, name: string): JsonValue | undefined {
  const colon = name.lastIndexOf(':')
  if (colon < 0) return resource[name]
  const extension = resource[name.slice(0, colon)]
  return isJsonObject(extension) ? extension[name.slice(colon + 1)] : undefined
}
