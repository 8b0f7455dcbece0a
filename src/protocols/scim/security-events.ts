import type { JsonObject } from '#kernel/json.ts'

/** One change of one resource; a request that changed nothing makes none. */
export interface ResourceChange {
  readonly kind: 'create' | 'patch' | 'put' | 'delete'
  readonly resourceType: 'User' | 'Group'
  readonly id: string
  readonly externalId?: string
  /** The ETag it has now, where it is known. */
  readonly version?: string
  /** Names of the attributes that changed, as in the schema (an extension's with its URN and a colon); none for delete. */
  readonly attributes: readonly string[]
  /** Where `active` was or became known. */
  readonly active?: { readonly before?: boolean; readonly after?: boolean }
}

export type EventPayload = 'notice' | 'full'

const prefix = 'urn:ietf:params:scim:event:prov'
const activate = `${prefix}:activate`
const deactivate = `${prefix}:deactivate`

/** RFC 9967 4: the events that a service with this payload makes. Groups that are patched are always told as a notice. */
export const eventUris = (payload: EventPayload): string[] => [
  ...['create', 'patch', 'put'].map((kind) => `${prefix}:${kind}:${payload}`),
  ...(payload === 'full' ? [`${prefix}:patch:notice`] : []),
  `${prefix}:delete`,
  activate,
  deactivate,
]

/** RFC 9967 2.1: the path below the service's address, and what the resource's owner calls it. */
export const eventSubject = ({ resourceType, id, externalId }: ResourceChange): JsonObject => ({
  format: 'scim',
  uri: `/${resourceType}s/${encodeURIComponent(id)}`,
  ...(externalId === undefined ? {} : { externalId }),
})

/**
 * RFC 9967 2.4: the events of a change with their payloads. With `data`, the resource as a client would read it, they
 * are full; without, they tell the names of what changed and no value. Deactivation comes in the same token as the
 * change that caused it.
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
