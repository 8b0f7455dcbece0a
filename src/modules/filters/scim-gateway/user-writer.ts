import type { JsonObject } from '#kernel/json.ts'
import { entityTag } from '#protocols/scim/entity-tag.ts'
import { internalName } from '#protocols/scim/internal-name.ts'
import { changedAttributes } from '#protocols/scim/patch/apply-patch.ts'
import { readAttribute, type ScimResource } from '#protocols/scim/resource.ts'
import type { AttributeRef } from '#protocols/scim/resource-schema.ts'
import { requireMatch } from './conditional.ts'
import { type GatewayParts, runWorkflow } from './gateway-parts.ts'
import type { FoundUser } from './lookups.ts'
import { retryWhileChanged } from './retry-changed.ts'
import { addChange, notFound, type ResourceChange, type ScimCall } from './scim-call.ts'
import { changedUser } from './user-changes.ts'

/** Reads the current resource, gives the wanted one; throws to refuse. It is asked again when the resource changed. */
export type Edit = (before: ScimResource) => ScimResource

/** Brings users to what clients ask for, by the user workflow. */
export class UserWriter {
  readonly #parts: GatewayParts

  constructor(parts: GatewayParts) {
    this.#parts = parts
  }

  /** Gives the user as the target then holds it. Throws NOT_FOUND, VERSION_MISMATCH, and what the edit throws. */
  change(call: ScimCall, id: string, kind: 'patch' | 'put', edit: Edit): Promise<FoundUser> {
    return this.#parts.lock.run(userKey(id), () => this.#attempts(call, id, kind, edit))
  }

  /** For a call that holds another lock already. */
  changeWithin(call: ScimCall, id: string, kind: 'patch' | 'put', edit: Edit): Promise<FoundUser> {
    return this.#parts.lock.within(userKey(id), () => this.#attempts(call, id, kind, edit))
  }

  /** Bound to the version that was read, so that even another process cannot come between. */
  #attempts(call: ScimCall, id: string, kind: 'patch' | 'put', edit: Edit): Promise<FoundUser> {
    const { userView, config, lookups } = this.#parts
    return retryWhileChanged(call, async () => {
      const found = await this.#find(id)
      requireMatch(call, found.user.version)
      const before = await userView.resource(found, call.base)
      const after = edit(before)
      const change = await changedUser(this.#parts, found, before, after)
      const password = passwordOf(after)
      if (change === undefined && password.password === undefined) return found
      await runWorkflow(this.#parts, call, {
        name: config.workflows.user,
        ...(change ?? { user: found.user }),
        ...password,
        basedOn: lookups.readVersion(found),
      })
      const changed = await this.#find(id)
      this.#note(call, kind, before, after, changed)
      return changed
    })
  }

  async #find(id: string): Promise<FoundUser> {
    const found = await this.#parts.lookups.userById(id)
    if (found === undefined) throw notFound('user', id)
    return found
  }

  #note(call: ScimCall, kind: 'patch' | 'put', before: JsonObject, after: JsonObject, { id, user }: FoundUser): void {
    const refs = changedAttributes(this.#parts.config.users.schema, before, after)
    noteUserChange(call, {
      kind,
      id,
      attributes: refs.map(internalName),
      cleared: clearedIn(after, refs),
      active: { ...activeOf('before', before), ...activeOf('after', after) },
      ...externalIdOf(after),
      ...versionOf(user.version),
    })
  }
}

export const userKey = (id: string): string => `user ${id.toLowerCase()}`

/** The names of those attributes that a resource has no value of. */
export const clearedIn = (resource: JsonObject, refs: readonly AttributeRef[]): string[] =>
  refs.filter((ref) => readAttribute(resource, ref) === undefined).map(internalName)

export function passwordOf(resource: JsonObject): { password?: string } {
  const password = resource['password']
  return typeof password === 'string' && password !== '' ? { password } : {}
}

export function noteUserChange(call: ScimCall, change: Omit<ResourceChange, 'resourceType'>): void {
  addChange(call, { resourceType: 'User', ...change })
}

export function activeOf(when: 'before' | 'after', { active }: JsonObject): { before?: boolean; after?: boolean } {
  return typeof active === 'boolean' ? { [when]: active } : {}
}

export const externalIdOf = ({ externalId }: JsonObject): { externalId?: string } =>
  typeof externalId === 'string' ? { externalId } : {}

export const versionOf = (version: string | undefined): { version?: string } =>
  version === undefined ? {} : { version: entityTag(version) }
