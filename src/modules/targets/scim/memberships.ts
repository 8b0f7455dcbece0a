import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { KeyedQueue } from '#modules/shared/targets/keyed-queue.ts'
import { answerError } from '#protocols/scim/client/scim-connection.ts'
import { member } from '#protocols/scim/message.ts'
import type { SyncOptions, TargetRequest } from '#sdk/target.ts'
import type { GroupLookups } from './group-lookups.ts'
import { requiredPath } from './resource-address.ts'
import { hasCode, patchSchema, send } from './resource-writer.ts'
import { modelOf, type ScimService } from './service-model.ts'
import { isGroupMember } from './stored-resource.ts'

/** A group by its id, and what is to happen to one user's membership. */
export interface MembershipChange {
  readonly action: 'add' | 'remove'
  readonly group: { readonly id: string; readonly name: string }
}

const bulkRequest = 'urn:ietf:params:scim:api:messages:2.0:BulkRequest'
const width = 8
const maxAttempts = 5

/** Changes memberships as sets: members are added and removed, lists of them are never rewritten where there is PATCH. */
export class Memberships {
  readonly #service: ScimService
  readonly #groups: GroupLookups
  readonly #queue = new KeyedQueue()

  constructor(service: ScimService, groups: GroupLookups) {
    this.#service = service
    this.#groups = groups
  }

  /** The groups of these names. Throws BAD_REQUEST for one that is not there: groups are not made in passing. */
  named(names: readonly string[]): Promise<{ readonly id: string; readonly name: string }[]> {
    return inParallel(names, width, async (name) => {
      const found = await this.#groups.byName(name, false)
      if (found !== undefined) return { id: found.entry.id, name: found.entry.name }
      throw new GatewayError('BAD_REQUEST', `target "${this.#service.name}" has no group "${name.slice(0, 100)}"`, {
        publicText: `There is no group "${name.slice(0, 100)}" in the server behind.`,
        keyword: 'invalidValue',
      })
    })
  }

  /** Throws VERSION_MISMATCH when the group is gone or has another name. */
  async expect(expected: NonNullable<SyncOptions['expectedGroup']>): Promise<void> {
    const found = await this.#groups.byId(expected.id, false)
    if (found?.entry.name === expected.name) return
    throw new GatewayError('VERSION_MISMATCH', `the group "${expected.name}" was renamed or deleted meanwhile`)
  }

  async change(userId: string, changes: readonly MembershipChange[], request: TargetRequest): Promise<void> {
    const model = await modelOf(this.#service)
    const { bulk, patch } = model.features
    if (changes.length > 1 && bulk !== undefined && patch) {
      const size = Math.max(1, Math.min(bulk.maxOperations, Math.floor(bulk.maxPayload / bytesOfOperation)))
      for (let i = 0; i < changes.length; i += size) await this.#bulk(userId, changes.slice(i, i + size), request)
      return
    }
    await inParallel(changes, width, (one) =>
      patch ? this.#patch(userId, one, request) : this.#put(userId, one, request),
    )
  }

  async #patch(userId: string, change: MembershipChange, request: TargetRequest): Promise<void> {
    const path = requiredPath(this.#service, '/Groups', change.group.id)
    try {
      await send(this.#service, { method: 'PATCH', path, body: patchOf(userId, change) }, request)
    } catch (error) {
      if (!isGone(error, change)) throw error
    }
  }

  async #bulk(userId: string, changes: readonly MembershipChange[], request: TargetRequest): Promise<void> {
    const Operations = changes.map((change) => ({
      method: 'PATCH',
      path: requiredPath(this.#service, '/Groups', change.group.id),
      data: patchOf(userId, change),
    }))
    const body = { schemas: [bulkRequest], Operations }
    const answer = await send(this.#service, { method: 'POST', path: '/Bulk', body }, request)
    const told: JsonValue = member(answer ?? {}, 'Operations') ?? []
    const results = Array.isArray(told) ? told.filter(isJsonObject) : []
    changes.forEach((change, i) => {
      // Results stand in the order of the operations, unless they say which one they belong to.
      const result = results.find((one) => isOf(one, change)) ?? results[i] ?? {}
      const status = statusOf(result)
      if (status >= 200 && status <= 299) return
      const call = `target "${this.#service.name}": PATCH of a group in bulk`
      const error = answerError({ call, status, body: member(result, 'response') })
      if (!isGone(error, change)) throw error
    })
  }

  async #put(userId: string, change: MembershipChange, request: TargetRequest): Promise<void> {
    const isThere = await this.rewrite(change.group.id, (members) => withMember(members, userId, change), request)
    if (!isThere && change.action === 'add') throw gone(change)
  }

  /**
   * Where the server has no PATCH, the whole list has to be written; bound to its version where there is one. `edit`
   * gives the new list, or undefined when nothing changes. False when the group is gone.
   */
  rewrite(
    id: string,
    edit: (members: readonly JsonObject[]) => readonly JsonObject[] | undefined,
    request: TargetRequest,
  ): Promise<boolean> {
    return this.#queue.run(id, async () => {
      const { features } = await modelOf(this.#service)
      for (let attempt = 1; ; attempt++) {
        const stored = await this.#groups.byId(id, true)
        if (stored === undefined) return false
        const held = member(stored.raw, 'members')
        const members = edit(Array.isArray(held) ? held.filter(isJsonObject) : [])
        if (members === undefined) return true
        const { meta: _, ...rest } = stored.raw
        const ifMatch = features.etag ? stored.entry.version : undefined
        try {
          const path = requiredPath(this.#service, '/Groups', id)
          await send(this.#service, { method: 'PUT', path, ifMatch, body: { ...rest, members: [...members] } }, request)
          return true
        } catch (error) {
          if (attempt >= maxAttempts || !hasCode(error, 'VERSION_MISMATCH')) throw error
        }
      }
    })
  }
}

/** More than any operation of this kind has, ids of the longest included. */
const bytesOfOperation = 8 * 1024

function patchOf(userId: string, { action }: MembershipChange): JsonObject {
  const operation =
    action === 'add'
      ? { op: 'add', path: 'members', value: [{ value: userId }] }
      : { op: 'remove', path: `members[value eq ${JSON.stringify(userId)}]` }
  return { schemas: [patchSchema], Operations: [operation] }
}

/** Nobody has to leave a group, or a user, that is gone. */
const isGone = (error: unknown, { action }: MembershipChange): boolean =>
  action === 'remove' &&
  (hasCode(error, 'NOT_FOUND') || (error instanceof GatewayError && error.keyword === 'noTarget'))

const gone = ({ group }: MembershipChange): GatewayError =>
  new GatewayError('NOT_FOUND', `the group "${group.name.slice(0, 100)}" is gone`)

/** Undefined when nothing changes. A group of the same id is another member. */
function withMember(
  members: readonly JsonObject[],
  userId: string,
  { action }: MembershipChange,
): readonly JsonObject[] | undefined {
  const others = members.filter((one) => isGroupMember(one) || member(one, 'value') !== userId)
  if (action === 'remove') return others.length === members.length ? undefined : others
  return others.length < members.length ? undefined : [...members, { value: userId }]
}

function isOf(result: JsonObject, { group }: MembershipChange): boolean {
  const location = member(result, 'location')
  return typeof location === 'string' && location.endsWith(`/${encodeURIComponent(group.id)}`)
}

/** A result without a status is that of an operation of which nothing is known. */
function statusOf(result: JsonObject): number {
  const status = member(result, 'status')
  const code = Number((isJsonObject(status) ? status['code'] : status) ?? 500)
  return Number.isInteger(code) ? code : 500
}
