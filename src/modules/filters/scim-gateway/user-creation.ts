import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { ScimResource } from '#protocols/scim/resource.ts'
import { heldAt, type NameOf } from './filter-translation.ts'
import { type GatewayParts, runWorkflow } from './gateway-parts.ts'
import type { FoundUser } from './lookups.ts'
import type { ScimCall } from './scim-call.ts'
import type { StoredSchema } from './stored-schema.ts'
import { storableChange } from './unstored-change.ts'
import { loginOf, loginTaken, newUser, replacedUser } from './user-changes.ts'
import { activeOf, externalIdOf, noteUserChange, passwordOf, type UserWriter, versionOf } from './user-writer.ts'

/** How often a former user is looked up whom others delete meanwhile. */
const maxAttempts = 3

class FormerIsGone extends Error {
  constructor(options: { readonly cause: GatewayError }) {
    super('the former user was deleted meanwhile', options)
    this.name = 'FormerIsGone'
  }
}

/** POST of a user: a new one, or a former one who comes back. */
export class UserCreation {
  readonly #parts: GatewayParts
  readonly #writer: UserWriter
  /** Where the externalId can be searched for; undefined when it is not kept. */
  readonly #externalId: string | undefined

  constructor(parts: GatewayParts, writer: UserWriter, nameOf: NameOf) {
    this.#parts = parts
    this.#writer = writer
    const path = parts.config.users.schema.resolveAttribute('externalId')
    this.#externalId = path === undefined ? undefined : heldAt(path, nameOf)?.names[0]
  }

  /** Gives the user as the target then holds it. Throws uniqueness when the userName is taken. */
  create(call: ScimCall, resource: ScimResource): Promise<FoundUser> {
    // Asked inside the lock, so that of two requests for one login exactly one creates.
    return this.#parts.lock.run(`login ${loginOf(resource).toLowerCase()}`, () => this.#attempts(call, resource))
  }

  /** Who was to come back may have been deleted meanwhile: then it is looked up again. */
  async #attempts(call: ScimCall, resource: ScimResource): Promise<FoundUser> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#create(call, resource)
      } catch (error) {
        if (!(error instanceof FormerIsGone)) throw error
        if (attempt >= maxAttempts) throw error.cause
      }
    }
  }

  async #create(call: ScimCall, sent: ScimResource): Promise<FoundUser> {
    const { lookups, config, managers, storage } = this.#parts
    const { ignored, users } = config
    const stored = await storage.users()
    const kept = storableChange(stored, users.schema, {}, sent, { kind: 'create', ignored })
    const resource = await managers.checked({}, kept)
    const user = await newUser(this.#parts, resource)
    for (const login of new Set([loginOf(resource), user.userID])) {
      const holder = await lookups.all.userByLogin(login)
      if (holder === undefined) continue
      if (await lookups.isDeleted(holder)) return this.#recreate(call, resource, holder)
      if (!(await this.#mayReturn(call, resource, holder))) throw loginTaken(login)
      return this.#bringBack(call, resource, holder)
    }
    const former = await this.#formerWithExternalId(call, resource)
    if (former !== undefined) return this.#bringBack(call, resource, former)
    // Bound to there being none, so that even another process cannot come between.
    const basedOn = lookups.readVersion(undefined)
    await runWorkflow(this.#parts, call, { name: config.workflows.user, user, ...passwordOf(resource), basedOn })
    const created = await lookups.all.userByLogin(user.userID)
    if (created === undefined) {
      const text = `workflow "${config.workflows.user}" ended, but the user is not there`
      throw new GatewayError('WORKFLOW_FAILED', text, {
        publicText: 'The workflow ended without creating the user. Check its tasks, then send the request again.',
      })
    }
    // Where logins are ids, a former user of that login may have left a mark.
    if (await lookups.isDeleted(created)) await lookups.marks.remove(created.id)
    await this.#requireInactive(call, stored, resource, created)
    noteUserChange(call, {
      kind: 'create',
      id: created.id,
      attributes: Object.keys(resource),
      active: activeOf('after', resource),
      ...externalIdOf(resource),
      ...versionOf(created.user.version),
    })
    return created
  }

  /** Whoever asks for an account that is off must not be told of one that is on. */
  async #requireInactive(call: ScimCall, stored: StoredSchema, sent: JsonObject, created: FoundUser): Promise<void> {
    const { config, userView } = this.#parts
    const path = config.users.schema.resolveAttribute('active')
    if (sent['active'] !== false || path === undefined || !stored.isShown(path)) return
    if ((await userView.resource(created, call.base))['active'] === false) return
    const text = `workflow "${config.workflows.user}" created the user, but not as inactive`
    throw new GatewayError('WORKFLOW_FAILED', text, {
      publicText: `The user was created, but "active" is not false: check workflow "${config.workflows.user}".`,
    })
  }

  /** A client that deactivates leavers creates them anew when they return; it must get the same person. */
  async #mayReturn(call: ScimCall, sent: JsonObject, found: FoundUser): Promise<boolean> {
    const { config, userView } = this.#parts
    if (config.client.rehire !== 'reactivate' || sent['active'] === false) return false
    return (await userView.resource(found, call.base))['active'] === false
  }

  /** Under another login only where users can be renamed; an externalId of several is nobody's. */
  async #formerWithExternalId(call: ScimCall, sent: JsonObject): Promise<FoundUser | undefined> {
    const { config, lookups } = this.#parts
    const { externalId: value } = sent
    const attribute = this.#externalId
    if (config.client.rehire !== 'reactivate' || !lookups.renamesUsers) return undefined
    if (typeof value !== 'string' || value === '' || attribute === undefined) return undefined
    const filter = { kind: 'equal', attribute, value, caseExact: true } as const
    const { items } = await lookups.searchUsers({ filter, offset: 0, limit: 2 })
    const [former] = items
    if (former === undefined || items.length > 1) return undefined
    return (await this.#mayReturn(call, sent, former)) ? former : undefined
  }

  /** The client was told that the user is gone, so it comes back as one that was just created, whatever the client. */
  #recreate(call: ScimCall, sent: ScimResource, { id }: FoundUser): Promise<FoundUser> {
    const { schema } = this.#parts.config.users
    return this.#writer.recreate(call, id, (before) => replacedUser(schema, before, { active: true, ...sent }))
  }

  async #bringBack(call: ScimCall, sent: ScimResource, { id }: FoundUser): Promise<FoundUser> {
    const { schema } = this.#parts.config.users
    const edit = (before: ScimResource): ScimResource => {
      if (before['active'] !== false) throw loginTaken(loginOf(sent))
      return replacedUser(schema, before, { ...sent, active: true })
    }
    try {
      return await this.#writer.changeWithin(call, id, 'put', edit, 'create')
    } catch (error) {
      const isAbsent = error instanceof GatewayError && error.code === 'NOT_FOUND'
      if (isAbsent && (await this.#parts.lookups.userById(id)) === undefined) throw new FormerIsGone({ cause: error })
      throw error
    }
  }
}
