import type { User } from '#identity/user.ts'
import type { JsonObject } from '#kernel/json.ts'
import { entityTag } from '#protocols/scim/entity-tag.ts'
import { changedAttributes } from '#protocols/scim/patch/apply-patch.ts'
import { readAttribute, type ScimResource } from '#protocols/scim/resource.ts'
import { type AttributeRef, internalName } from '#protocols/scim/resource-schema.ts'
import { requireMatch } from './conditional.ts'
import { type GatewayParts, runWorkflow } from './gateway-parts.ts'
import type { FoundUser } from './lookups.ts'
import { retryWhileChanged } from './retry-changed.ts'
import { addChange, notFound, type ResourceChange, type ScimCall } from './scim-call.ts'
import { type ChangeKind, requireEffect, requireMappedChange, storableChange } from './unstored-change.ts'
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

  /** For a call that holds another lock already. `refusing` says how to treat what can't be stored. */
  changeWithin(
    call: ScimCall,
    id: string,
    kind: 'patch' | 'put',
    edit: Edit,
    refusing: ChangeKind = kind,
  ): Promise<FoundUser> {
    return this.#parts.lock.within(userKey(id), () => this.#attempts(call, id, kind, edit, refusing))
  }

  /** Of a user who was deleted and is still in the target, for a call that holds another lock already. */
  recreate(call: ScimCall, id: string, edit: Edit): Promise<FoundUser> {
    return this.#parts.lock.within(userKey(id), async () => {
      const { lookups } = this.#parts
      const changed = await this.#attempts(call, id, 'create', edit, 'create', (wanted) => lookups.all.userById(wanted))
      await lookups.marks.remove(id)
      return changed
    })
  }

  /** Bound to the version that was read, so that even another process cannot come between. */
  #attempts(
    call: ScimCall,
    id: string,
    kind: ChangeKind,
    edit: Edit,
    refusing: ChangeKind = kind,
    find: (id: string) => Promise<FoundUser | undefined> = (wanted) => this.#parts.lookups.userById(wanted),
  ): Promise<FoundUser> {
    const { userView, config, lookups, managers, storage } = this.#parts
    const { schema } = config.users
    const required = async (): Promise<FoundUser> => {
      const found = await find(id)
      if (found === undefined) throw notFound('user', id)
      return found
    }
    return retryWhileChanged(call, async () => {
      const found = await required()
      requireMatch(call, found.user.version)
      const before = await userView.resource(found, call.base)
      const stored = await storage.users()
      const wanted = await managers.checked(before, edit(before))
      const after = storableChange(stored, schema, before, wanted, { kind: refusing, ignored: config.ignored })
      const change = await changedUser(this.#parts, found, before, after)
      const password = passwordOf(after)
      const unmarked = lookups.marks.clearedFor(found.user)
      if (change === undefined && password.password === undefined && unmarked.length === 0) {
        if (refusing !== 'create') requireMappedChange(stored, schema, before, after, refusing)
        return found
      }
      // A mark may be left from before someone else activated the user: without it, this one is inactive and not deleted.
      if (kind !== 'create' && before['active'] !== false && after['active'] === false) await lookups.marks.remove(id)
      await runWorkflow(this.#parts, call, {
        name: config.workflows.user,
        ...(change ?? { user: without(found.user, unmarked) }),
        cleared: [...(change?.cleared ?? []), ...unmarked],
        ...password,
        basedOn: lookups.readVersion(found),
      })
      const changed = await required()
      const seen = await userView.resource(changed, call.base)
      const held = { before: found.user.attributes, after: changed.user.attributes }
      requireEffect(stored, schema, config.workflows.user, { before, wanted: after, after: seen, held })
      this.#note(call, kind, before, after, changed)
      return changed
    })
  }

  #note(call: ScimCall, kind: ChangeKind, before: JsonObject, after: JsonObject, { id, user }: FoundUser): void {
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

function without(user: User, names: readonly string[]): User {
  if (names.length === 0) return user
  const attributes = user.attributes.clone()
  for (const name of names) attributes.delete(name)
  return { ...user, attributes }
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
