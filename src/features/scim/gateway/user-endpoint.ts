import type { EntryType } from '#features/scim/types/entry-type.ts'
import { requireTextForms } from '#features/scim/types/text-forms.ts'
import { addedValues } from '#features/scim/types/unique-values.ts'
import { loginProblem } from '#identity/login-name.ts'
import type { SearchQuery } from '#identity/search.ts'
import type { User } from '#identity/user.ts'
import { type Awaitable, andThen } from '#kernel/awaitable.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { evaluateFilter } from '#protocols/scim/filter/evaluate-filter.ts'
import { applyPatch, changedAttributes } from '#protocols/scim/patch/apply-patch.ts'
import { parsePatch } from '#protocols/scim/patch/parse-patch.ts'
import { clientValues, type ReadOptions, readResource } from '#protocols/scim/read-resource.ts'
import { replaceResource, requireAttributes } from '#protocols/scim/resource-rules.ts'
import { readAttribute, type ScimResource, writeAttribute } from '#protocols/scim/schema/resource.ts'
import { type AttributePath, internalName, type ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { redacted, scimError } from '#protocols/scim/schema/scim-error.ts'
import type { AttributeWrite } from '#sdk/flow/flow.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { type EffectCheck, entryAfter, refuseDryRunMember, stepsOf, writesIn } from './dry-run.ts'
import { fixedAttribute, locate, userFilterNames } from './filter-translation.ts'
import {
  type ListRequest,
  lookedUpPage,
  pagedSearch,
  type ResourcePage,
  requireSearchable,
  type Search,
} from './lists.ts'
import type { FoundUser, Lookups } from './lookups.ts'
import type { KnownManagers } from './managers.ts'
import { type GatewayParts, orPending, orPreviewed, retryWhileChanged, runWorkflow, userKey } from './run-workflow.ts'
import { attributeChange } from './schema-mapping.ts'
import {
  addChange,
  describeChange,
  namesWithoutValue,
  notFound,
  notSupported,
  projectionOf,
  requireAddress,
  requireMatch,
  resourceAnswer,
  type ScimCall,
} from './scim-call.ts'
import {
  type ChangeKind,
  refuseUnknown,
  requireEffect,
  requireMappedChange,
  type StoredSchema,
  storableChange,
} from './stored-schema.ts'
import type { Settled } from './unfinished-changes.ts'

/** Returns the wanted resource; throws to refuse the change. It is called again if the resource changed meanwhile. */
type Edit = (before: ScimResource) => ScimResource

interface ChangeOptions {
  /** The kind of the event. */
  readonly kind: ChangeKind
  /** How attributes that cannot be stored are treated; as for `kind` by default. */
  readonly storeAs?: ChangeKind
  /** Where the user is looked up. */
  readonly lookups?: Lookups
  /** What the caller has settled; otherwise it is settled here. */
  readonly settled?: Settled
}

/** The largest body of a request about one user. */
const maxUserBody = 1024 * 1024

/** How often a create looks again for a former user that other requests delete meanwhile. */
const maxAttempts = 3

/**
 * `/Users` and `/Users/{id}`, or those of another type, whose resources are the users here. Users are created, changed and deleted by workflows; an answer shows the user as the target
 * then stores it.
 */
export class UserEndpoint {
  readonly schema: ResourceSchema
  readonly type: EntryType
  readonly #parts: GatewayParts
  /** The attribute that former users are searched by; undefined if the externalId is not stored. */
  readonly #externalId: string | undefined

  constructor(parts: GatewayParts) {
    this.schema = parts.config.users.schema
    this.type = parts.config.users.type
    this.#parts = parts
    const path = this.schema.resolveAttribute('externalId')
    this.#externalId = path === undefined ? undefined : locate(path, userFilterNames(parts))?.names[0]
  }

  get(call: ScimCall): Awaitable<GatewayResponse> {
    return andThen(this.#find(this.#parts.lookups, call.id), (found) => this.#show(call, 200, found))
  }

  /** Managers are looked up for the page that is shown; before that only if the list filters or sorts by their names. */
  async search(call: ScimCall, list: ListRequest): Promise<ResourcePage> {
    const { users, managers } = this.#parts
    const known: KnownManagers = new Map()
    const withManager = async (found: FoundUser): Promise<ScimResource> => {
      const plain = await users.resource(found, call.base)
      return (await managers.shown([plain], call.base, known))[0] ?? plain
    }
    if (managers.concerns(list)) return this.#page(list, withManager)
    const page = await this.#page(list, (found) => users.resource(found, call.base))
    if (!managers.areShownBy(list.projection)) return page
    return { ...page, resources: await managers.shown(page.resources, call.base, known) }
  }

  async #page(list: ListRequest, toResource: Search<FoundUser>['toResource']): Promise<ResourcePage> {
    const { lookups, storage } = this.#parts
    const { filter } = list
    const searchable = await storage.searchable('users')
    requireSearchable(list, searchable)
    const nameOf = userFilterNames(this.#parts, searchable)
    const id = fixedAttribute(filter, 'id')
    const login = fixedAttribute(filter, this.type.nameAttribute)
    if (filter !== undefined && (id !== undefined || login !== undefined)) {
      const found = id === undefined ? await lookups.userByLogin(login ?? '') : await lookups.userById(id)
      const [shown] = await lookups.withIndirectGroups(found === undefined ? [] : [found])
      const resources = shown === undefined ? [] : [await toResource(shown)]
      return lookedUpPage(resources, list, nameOf, (resource) => evaluateFilter(filter, resource))
    }
    const search = async (query: SearchQuery, byPosition?: boolean) => {
      const page = await lookups.searchUsers(query, byPosition)
      return { ...page, items: await lookups.withIndirectGroups(page.items) }
    }
    return pagedSearch({ search, toResource }, list, nameOf)
  }

  /** Creates a user, or reactivates a former one. Throws uniqueness if another user has the userName. */
  async create(call: ScimCall): Promise<GatewayResponse> {
    const resource = await this.#read(call, 'create')
    call.notes.operations = describe('add', resource)
    // The lookup is queued too, so that of two requests for one login exactly one creates.
    const login = this.#loginOf(resource)
    const created = await this.#parts.queue.run(`login ${login.toLowerCase()}`, async () => {
      for (let attempt = 1; ; attempt++) {
        try {
          // Another process may create the user in between, which is then found.
          return await retryWhileChanged(call, async () => {
            const settled = await this.#parts.unfinished.settle(call, {
              type: this.type.name,
              names: [subjectOf(this.type, login)],
            })
            return await this.#create(call, resource, settled)
          })
        } catch (error) {
          if (!(error instanceof FormerUserDeleted)) throw error
          if (attempt >= maxAttempts) throw error.cause
        }
      }
    })
    return this.#show(call, 201, created)
  }

  async #create(call: ScimCall, sent: ScimResource, settled: Settled): Promise<FoundUser> {
    const { lookups, config, managers, storage } = this.#parts
    const { workflows } = config
    const stored = await storage.users()
    const storable = storableChange(stored, {}, sent, 'create')
    const resource = await managers.checked({}, storable)
    this.#requireForms(call, {}, resource)
    const user = await this.#newUser(resource, stored)
    for (const login of new Set([this.#loginOf(resource), user.userID])) {
      call.dryRun?.take(`${this.type.name} ${this.type.nameAttribute}`, login.toLowerCase())
      const present = await lookups.all.userByLogin(login)
      if (present === undefined) continue
      if (settled.hasBegun || (await lookups.isDeleted(present)))
        return this.#recreate(call, resource, present, settled)
      if (!(await this.#mayReturn(call, resource, present))) {
        if (await this.#parts.unfinished.wasFinished(call, settled))
          return this.#recreate(call, resource, present, settled)
        throw this.#loginTaken(login)
      }
      return this.#reactivate(call, resource, present)
    }
    const former = await this.#formerWithExternalId(call, resource)
    if (former !== undefined) return this.#reactivate(call, resource, former)
    await this.#requireFreeId(call, user)
    // Bound to the absence of the user, so that no other process can create it in between.
    const basedOn = lookups.readVersion(undefined)
    const planned = { user, ...passwordOf(resource), ...this.#subject(user) }
    const check: EffectCheck = async (steps) => {
      const after = entryAfter(stepsOf('user', config.lookup, steps), user.userID, undefined)
      if (after === undefined) throw this.#notCreated()
      const shown = { id: '', user: { ...user, userID: after.name, attributes: after.attributes } }
      await this.#requireInactive(call, stored, resource, shown)
    }
    await this.#keepingUnique(call, { before: {}, after: resource, ...settled }, () =>
      runWorkflow(this.#parts, call, { name: workflows.user, ...planned, basedOn, settled, check }),
    )
    const created = await lookups.all.userByLogin(user.userID)
    if (created === undefined) throw this.#notCreated()
    // If logins are ids, a former user of this login may have left a mark.
    if (await lookups.isDeleted(created)) await lookups.marks.remove(created.id)
    await this.#requireInactive(call, stored, resource, created)
    addChange(call, {
      kind: 'create',
      ...this.#typeOfChange,
      id: created.id,
      attributes: Object.keys(resource),
      ...(config.users.active !== undefined && { active: activeOf('after', resource) }),
      ...describeChange(resource, created.user.version),
    })
    return created
  }

  #notCreated(): GatewayError {
    const { noun } = this.type
    const text = `workflow "${this.#parts.config.workflows.user}" ended without creating the ${noun}`
    const publicText = `The workflow ended without creating the ${noun}. Check its tasks, then send the request again.`
    return new GatewayError('WORKFLOW_FAILED', text, { publicText })
  }

  async #newUser(resource: JsonObject, { unstorable }: StoredSchema): Promise<User> {
    const login = this.#loginOf(resource)
    const { loginAttribute } = this.#parts.config.users
    const attributes = await this.#parts.users.attributes(resource, login, unstorable)
    const userID = attributes.first(loginAttribute) ?? login
    requireLogin(this.type, userID)
    if (!attributes.has(loginAttribute)) attributes.set(loginAttribute, [userID])
    return { userID, attributes, groups: [] }
  }

  /** Of two users with one id, neither could be found. Ids that the target makes are its own concern. */
  async #requireFreeId({ dryRun }: ScimCall, { userID, attributes }: User): Promise<void> {
    const { lookups, config } = this.#parts
    const attribute = lookups.userIdAttribute
    const isSent = (name: string): boolean => name.toLowerCase() === attribute?.toLowerCase()
    if (attribute === undefined || !config.users.produces.some(isSent)) return
    const id = attributes.first(attribute) ?? userID
    const name = this.#clientName(attribute)
    requireAddress(name, id)
    dryRun?.take(`${this.type.name} ${name}`, id)
    if ((await lookups.all.userById(lookups.ids.ofUser(id))) === undefined) return
    const remedy = 'Choose another one, or change that user.'
    throw scimError(
      'uniqueness',
      `${name}: another user has ${redacted(id)}, and it is the id of users here. ${remedy}`,
    )
  }

  /** Throws NOT_FOUND. */
  #find(lookups: Lookups, id: string): Awaitable<FoundUser> {
    return andThen(lookups.userById(id), (found) => {
      if (found === undefined) throw notFound(this.type.noun, id, this.type.nameAttribute)
      return found
    })
  }

  #loginOf(resource: JsonObject): string {
    const { nameAttribute } = this.type
    const login = resource[nameAttribute]
    if (typeof login !== 'string' || login === '')
      throw scimError('invalidValue', `${nameAttribute} is required. Send it as a text.`)
    return login
  }

  #loginTaken(login: string) {
    const { nameAttribute, noun } = this.type
    const text = `${nameAttribute}: another ${noun} has ${redacted(login)}. Choose another one, or change that ${noun}.`
    return scimError('uniqueness', text)
  }

  #requireForms(call: ScimCall, before: JsonObject, after: JsonObject): void {
    const { endpoints } = this.#parts
    if (this.type.isCustom) requireTextForms(this.schema, { base: call.base, endpoints }, before, after)
  }

  /** Throws uniqueness, before the work, if another resource has a unique value that the change adds. */
  async #keepingUnique<T>(
    { dryRun, notes }: ScimCall,
    change: { readonly id?: string; readonly before: JsonObject; readonly after: JsonObject } & Settled,
    work: () => Promise<T>,
  ): Promise<T> {
    const { uniqueness, users } = this.#parts
    const { id, before, after, resource } = change
    const values = uniqueness === undefined ? [] : addedValues(uniqueness.paths, before, after)
    if (uniqueness === undefined || values.length === 0) return await work()
    const checked = async (): Promise<T> => {
      for (const { path, value } of values) {
        const filter = { kind: 'compare', operator: 'eq', path, value } as const
        const extent = { kind: 'index', offset: 0, count: 2 } as const
        const list = { name: this.type.name, filter, sort: undefined, extent, projection: undefined }
        const { resources } = await this.#page(list, (found) => users.resource(found, ''))
        const { caseExact } = path.sub ?? path.attribute
        dryRun?.take(`${this.type.name} ${internalName(path)}`, caseExact ? value : value.toLowerCase())
        if (resources.every((one) => one['id'] === id)) continue
        const text = `${internalName(path)}: another ${this.type.noun} has ${redacted(value)}. Send another value.`
        throw scimError('uniqueness', text)
      }
      return await work()
    }
    const { length } = notes.workflows
    if (dryRun === undefined) {
      return await uniqueness.locks.run(values, { resource, run: () => notes.workflows[length] }, checked)
    }
    // A dry run writes nothing, not even a lock.
    await uniqueness.locks.requireFree(values, resource)
    return await checked()
  }

  /** For the runs about a resource that is not a user. */
  #subject({ userID }: User): { subject?: string } {
    return this.type.isCustom ? { subject: subjectOf(this.type, userID) } : {}
  }

  get #typeOfChange() {
    const { name, endpoint, isCustom } = this.type
    return { resourceType: name, ...(isCustom ? { endpoint } : {}) }
  }

  #clientName(attribute: string): string {
    return this.#parts.config.clientNames.get(attribute.toLowerCase()) ?? attribute
  }

  /** A client that creates an inactive account must not end up with an active one. */
  async #requireInactive(call: ScimCall, stored: StoredSchema, sent: JsonObject, created: FoundUser): Promise<void> {
    const { config, users } = this.#parts
    const path = config.users.active
    if (sent['active'] !== false || path === undefined || !stored.isShown(path)) return
    if ((await users.resource(created, call.base))['active'] === false) return
    const workflow = config.workflows.user
    throw new GatewayError('WORKFLOW_FAILED', `workflow "${workflow}" created the user, but not as inactive`, {
      publicText: `The user was created, but "active" is not false: check workflow "${workflow}".`,
    })
  }

  /** Clients that deactivate leavers create them again when they return; they must get the same account. */
  async #mayReturn(call: ScimCall, sent: JsonObject, found: FoundUser): Promise<boolean> {
    const { config, users } = this.#parts
    if (config.client.rehire !== 'reactivate' || sent['active'] === false) return false
    return (await users.resource(found, call.base))['active'] === false
  }

  /** A former user with another login, if users can be renamed. An externalId that several users have names none. */
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

  /**
   * To clients this user was deleted, or an earlier request did not finish to create it. So it returns like a new one,
   * whatever the client's profile.
   */
  #recreate(call: ScimCall, sent: ScimResource, { id }: FoundUser, settled: Settled): Promise<FoundUser> {
    const { queue, lookups } = this.#parts
    const { active } = this.#parts.config.users
    const edit = (before: ScimResource) =>
      replacedUser(this.schema, before, active === undefined ? sent : { active: true, ...sent }, active)
    return queue.runWithin(userKey(id), async () => {
      const changed = await this.#changeNow(call, id, edit, { kind: 'create', lookups: lookups.all, settled })
      if (call.dryRun === undefined) await lookups.marks.remove(id)
      else if (await lookups.isDeleted(changed)) call.dryRun.cut('The deleted user would be shown again.')
      return changed
    })
  }

  async #reactivate(call: ScimCall, sent: ScimResource, { id }: FoundUser): Promise<FoundUser> {
    const { queue, lookups } = this.#parts
    const edit = (before: ScimResource): ScimResource => {
      if (before['active'] !== false) throw this.#loginTaken(this.#loginOf(sent))
      return replacedUser(this.schema, before, { ...sent, active: true }, this.#parts.config.users.active)
    }
    try {
      return await queue.runWithin(userKey(id), () =>
        this.#changeNow(call, id, edit, { kind: 'put', storeAs: 'create' }),
      )
    } catch (error) {
      const isAbsent = error instanceof GatewayError && error.code === 'NOT_FOUND'
      if (isAbsent && (await lookups.userById(id)) === undefined) throw new FormerUserDeleted({ cause: error })
      throw error
    }
  }

  async patch(call: ScimCall): Promise<GatewayResponse> {
    const options = this.#optionsFor('patch')
    const body = await call.body(maxUserBody)
    refuseDryRunMember(body)
    const operations = parsePatch(this.schema, body, options)
    call.notes.operations = operations.map(({ op, target }) => ({ op, path: internalName(target) }))
    const edit = (before: ScimResource) => applyPatch(this.schema, before, operations, options)
    return this.#show(call, 200, await this.#change(call, call.id, 'patch', edit))
  }

  /** Attributes that the client leaves out are cleared, except those that only the service sets. */
  async replace(call: ScimCall): Promise<GatewayResponse> {
    const sent = await this.#read(call, 'put')
    call.notes.operations = describe('replace', sent)
    const { active } = this.#parts.config.users
    const edit = (before: ScimResource) => replacedUser(this.schema, before, sent, active)
    return this.#show(call, 200, await this.#change(call, call.id, 'put', edit))
  }

  /** Throws TARGET_UNREACHABLE while an earlier change of the user is unfinished. */
  async #settle(call: ScimCall, id: string): Promise<Settled> {
    const { unfinished, lookups } = this.#parts
    const present = unfinished.arePossible ? await lookups.all.userById(id) : undefined
    const names = present === undefined ? [] : [subjectOf(this.type, present.user.userID)]
    return await unfinished.settle(call, { type: this.type.name, id, names, isAbsent: present === undefined })
  }

  /** Throws NOT_FOUND, VERSION_MISMATCH, and what the edit throws. */
  #change(call: ScimCall, id: string, kind: 'patch' | 'put', edit: Edit): Promise<FoundUser> {
    return this.#parts.queue.run(userKey(id), () => this.#changeNow(call, id, edit, { kind }))
  }

  /** The run is bound to the version that was read, so that no other process can change the user in between. */
  async #changeNow(call: ScimCall, id: string, edit: Edit, options: ChangeOptions): Promise<FoundUser> {
    const { users, config, lookups, managers, storage, unfinished } = this.#parts
    const { kind, storeAs = kind, lookups: from = lookups } = options
    const settled = options.settled ?? (await this.#settle(call, id))
    const writesElsewhere = unfinished.writesElsewhere(config.workflows.user)
    return await retryWhileChanged(call, async () => {
      const found = await this.#find(from, id)
      requireMatch(call, found.user.version)
      const before = await users.resource(found, call.base)
      const stored = await storage.users()
      const wanted = await managers.checked(before, edit(before))
      this.#requireForms(call, before, wanted)
      const after = storableChange(stored, before, wanted, storeAs)
      const change = await this.#userChange(found, before, after, stored)
      const password = passwordOf(after)
      const unmarked = lookups.marks.clearedFor(found.user)
      const isChanged = change.isChanged || password.password !== undefined || unmarked.length > 0
      if (!isChanged) {
        if (storeAs !== 'create') requireMappedChange(stored, before, after, storeAs)
        if (!writesElsewhere) return found
      }
      // A mark may remain from before someone else activated the user; this change deactivates, it does not delete.
      const deactivates = config.users.active !== undefined && before['active'] !== false && after['active'] === false
      if (kind !== 'create' && deactivates && call.dryRun === undefined) await lookups.marks.remove(id)
      const requireDone = async (changed: FoundUser, written: readonly AttributeWrite[]) =>
        requireEffect(stored, {
          before,
          wanted: after,
          after: await users.resource(changed, call.base),
          stored: { before: found.user.attributes, after: changed.user.attributes },
          written,
          defaultValues: (name) => storage.defaultValues(name, changed.user),
        })
      const check: EffectCheck = async (steps) => {
        const entries = stepsOf('user', config.lookup, steps)
        const entry = entryAfter(entries, found.user.userID, found.user.attributes)
        if (entry === undefined) throw notFound(this.type.noun, id, this.type.nameAttribute)
        const user = { ...found.user, userID: entry.name, attributes: entry.attributes }
        await requireDone({ ...found, user }, writesIn(entries))
      }
      const run = {
        name: config.workflows.user,
        ...(change.isChanged || writesElsewhere ? change.planned : { user: without(found.user, unmarked) }),
        cleared: [...(change.isChanged ? change.planned.cleared : []), ...unmarked],
        ...password,
        ...this.#subject(found.user),
        basedOn: lookups.readVersion(found),
        settled,
        check,
      }
      const written = await this.#keepingUnique(call, { id, before, after, ...settled }, () =>
        runWorkflow(this.#parts, call, run),
      )
      const changed = await this.#find(from, id)
      await requireDone(changed, written)
      if (!isChanged) return changed
      const refs = changedAttributes(this.schema, before, after)
      addChange(call, {
        kind,
        ...this.#typeOfChange,
        id: changed.id,
        attributes: refs.map(internalName),
        cleared: namesWithoutValue(after, refs),
        ...(config.users.active !== undefined && {
          active: { ...activeOf('before', before), ...activeOf('after', after) },
        }),
        ...describeChange(after, changed.user.version),
      })
      return changed
    })
  }

  /** What the workflow is started with, and whether anything that this gateway stores changes. */
  async #userChange(found: FoundUser, before: JsonObject, after: JsonObject, { unstorable }: StoredSchema) {
    const { config, lookups, users } = this.#parts
    const { produces, loginAttribute, mapping } = config.users
    const { user } = found
    const old = await users.attributes(before, user.userID, unstorable)
    const fresh = await users.attributes(after, lookups.renamesUsers ? this.#loginOf(after) : user.userID, unstorable)
    const newUserID = await this.#newLogin(found, {
      before: { sent: this.#loginOf(before), mapped: old.first(loginAttribute) },
      after: { sent: this.#loginOf(after), mapped: fresh.first(loginAttribute) },
    })
    const idAttribute = lookups.userIdAttribute
    if (idAttribute !== undefined && old.first(idAttribute) !== fresh.first(idAttribute)) {
      const text = `${this.#clientName(idAttribute)} cannot be changed: it is the id of the user here.`
      throw scimError('mutability', `${text} Create another user instead.`)
    }
    const { attributes, cleared, isChanged } = attributeChange(mapping, produces, user.attributes, old, fresh)
    if (!attributes.has(loginAttribute)) attributes.set(loginAttribute, [newUserID ?? user.userID])
    const planned = { user: { ...user, attributes, groups: [] }, cleared, newUserID }
    return { isChanged: isChanged || newUserID !== undefined, planned }
  }

  /**
   * The login that the user gets; undefined if it stays the same. Throws uniqueness if another user has it, mutability
   * if users cannot be renamed. Letter case may always change, since it does not make another login.
   */
  async #newLogin({ id, user }: FoundUser, login: { before: Login; after: Login }): Promise<string | undefined> {
    const { lookups } = this.#parts
    const { before, after } = login
    if (!lookups.renamesUsers) {
      if (before.sent.toLowerCase() === after.sent.toLowerCase()) return undefined
      const { noun, nameAttribute } = this.type
      const text = `${nameAttribute} cannot be changed: this gateway identifies ${noun}s by it.`
      throw scimError('mutability', `${text} Create another ${noun} instead.`)
    }
    const wanted = after.mapped ?? after.sent
    if (wanted === (before.mapped ?? before.sent) || wanted === user.userID) return undefined
    requireLogin(this.type, wanted)
    const present = await lookups.userByLogin(wanted)
    if (present !== undefined && present.id !== id) throw this.#loginTaken(wanted)
    return wanted
  }

  async delete(call: ScimCall): Promise<void> {
    const { queue, config, lookups, managers } = this.#parts
    const name = config.workflows.deleteUser
    const { noun, isCustom } = this.type
    if (name === undefined) {
      const missing = isCustom ? `its ResourceType has no deleteWorkflow` : 'this gateway has no deleteUserWorkflowName'
      throw notSupported(`${isCustom ? `A ${noun}` : 'Users'} cannot be deleted: ${missing}.`)
    }
    const remove = async (): Promise<string> => {
      const settled = await this.#settle(call, call.id)
      const present = await lookups.userById(call.id)
      if (present === undefined && settled.hasBegun) return call.id
      const found = await this.#find(lookups, call.id)
      requireMatch(call, found.user.version)
      const user = lookups.marks.marked(found.user)
      const basedOn = lookups.readVersion(found)
      const check: EffectCheck = async (steps) => {
        const after = entryAfter(stepsOf('user', config.lookup, steps), found.user.userID, found.user.attributes)
        const shown = after && { ...found, user: { ...found.user, userID: after.name, attributes: after.attributes } }
        if (shown !== undefined) await this.#requireDeactivated(shown, name)
      }
      await orPreviewed(runWorkflow(this.#parts, call, { name, user, ...this.#subject(user), basedOn, settled, check }))
      if (call.dryRun !== undefined) return found.id
      await this.#completeDelete(found.id, name)
      addChange(call, { kind: 'delete', ...this.#typeOfChange, id: found.id, attributes: [] })
      return found.id
    }
    const deleted = await queue.run(userKey(call.id), () => retryWhileChanged(call, remove))
    // A version that the client sent is that of the deleted user, not of the users it managed.
    const clear = ({ id }: FoundUser, edit: Edit) =>
      this.#change({ ...call, id, ifMatch: undefined, ifNoneMatch: undefined }, id, 'patch', edit)
    if (call.dryRun === undefined) await managers.clear(deleted, clear)
    else await managers.previewClear(deleted, (user, edit) => orPending(call, clear(user, edit)), call.dryRun)
  }

  /** A delete workflow may delete the user or deactivate it. If it did neither, the delete fails. */
  async #completeDelete(id: string, workflow: string): Promise<void> {
    const { lookups } = this.#parts
    const present = await lookups.all.userById(id)
    if (present === undefined) return lookups.marks.remove(id)
    await this.#requireDeactivated(present, workflow)
    return lookups.marks.set(present)
  }

  async #requireDeactivated(present: FoundUser, workflow: string): Promise<void> {
    const active = await this.#parts.lookups.isActive(present)
    if (active === false) return
    const { noun, isCustom } = this.type
    const state = isCustom ? '' : active === true ? ' and active' : ' and is not shown as inactive'
    const instead = isCustom ? '' : ', or set what "active" is mapped to'
    throw new GatewayError('WORKFLOW_FAILED', `workflow "${workflow}" ended, but the ${noun} is still there`, {
      publicText: `The delete workflow ended, but the ${noun} is still there${state}. Have the workflow delete the ${noun}${instead}.`,
    })
  }

  async #read(call: ScimCall, kind: ChangeKind): Promise<ScimResource> {
    const resource = readResource(this.schema, await call.body(maxUserBody), this.#optionsFor(kind))
    requireAttributes(this.schema, resource)
    return resource
  }

  #optionsFor(kind: ChangeKind): ReadOptions {
    const { ignored, client } = this.#parts.config
    return { ...clientValues, strict: client.strict, unknown: refuseUnknown(this.schema, kind, ignored) }
  }

  #show(call: ScimCall, status: 200 | 201, found: FoundUser): Awaitable<GatewayResponse> {
    const { users, managers, lookups } = this.#parts
    const projection = projectionOf(call, this.schema)
    const mapped = andThen(lookups.withIndirectGroups([found]), ([nested = found]) => users.resource(nested, call.base))
    return andThen(mapped, (plain) =>
      andThen(managers.areShownBy(projection) ? managers.shown([plain], call.base) : [], ([resource = plain]) =>
        resourceAnswer(call, status, resource, found.user.version, projection),
      ),
    )
  }
}

class FormerUserDeleted extends Error {
  constructor(options: { readonly cause: GatewayError }) {
    super('the former user was deleted meanwhile', options)
    this.name = 'FormerUserDeleted'
  }
}

interface Login {
  readonly sent: string
  /** The login that the mapping makes of the resource. */
  readonly mapped: string | undefined
}

/** The outcome of a PUT. Clients cannot send back attributes that are never returned, so these stay if left out. */
function replacedUser(
  schema: ResourceSchema,
  before: JsonObject,
  sent: JsonObject,
  activates: AttributePath | undefined,
): ScimResource {
  const after = replaceResource(schema, before, sent)
  for (const ref of schema.attributes()) {
    if (ref.attribute.returned !== 'never' || readAttribute(sent, ref) !== undefined) continue
    writeAttribute(after, ref, readAttribute(before, ref))
  }
  // A client that does not send `active` does not mean to activate or deactivate the account.
  const { active } = before
  if (activates !== undefined && sent['active'] === undefined && active !== undefined) after['active'] = active
  return after
}

/** For a new login, which can be the id of the user, and is then part of its address. */
function requireLogin({ nameAttribute, isCustom }: EntryType, login: string): void {
  const problem = loginProblem(login)
  if (problem !== undefined)
    throw scimError('invalidValue', `${nameAttribute} ${problem}. Send another ${isCustom ? 'one' : 'login'}.`)
  requireAddress(nameAttribute, login)
}

/** The subject of the runs about a resource; a device must not be taken for the user of the same name. */
const subjectOf = ({ isCustom, name }: EntryType, login: string): string =>
  isCustom ? `${name} ${login}`.toLowerCase() : login

function passwordOf({ password }: JsonObject): { password?: string } {
  return typeof password === 'string' && password !== '' ? { password } : {}
}

const activeOf = (when: 'before' | 'after', { active }: JsonObject): { before?: boolean; after?: boolean } =>
  typeof active === 'boolean' ? { [when]: active } : {}

function without(user: User, names: readonly string[]): User {
  const attributes = user.attributes.clone()
  for (const name of names) attributes.delete(name)
  return { ...user, attributes }
}

/** A whole resource for the journal: the names of its attributes, without values. */
const describe = (op: string, resource: JsonObject): JsonValue => Object.keys(resource).map((path) => ({ op, path }))
