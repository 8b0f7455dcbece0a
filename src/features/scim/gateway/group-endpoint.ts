import { randomBytes } from 'node:crypto'
import { Attributes } from '#identity/attributes.ts'
import type { Filter } from '#identity/filter/ast.ts'
import type { Group } from '#identity/group.ts'
import { BoundedCache } from '#kernel/bounded-cache.ts'
import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { applyPatch, changedAttributes } from '#protocols/scim/patch/apply-patch.ts'
import { type PatchOperation, parsePatch } from '#protocols/scim/patch/parse-patch.ts'
import { type ReadOptions, readResource } from '#protocols/scim/read-resource.ts'
import { requireAttributes } from '#protocols/scim/resource-rules.ts'
import { readAttribute, type ScimResource } from '#protocols/scim/schema/resource.ts'
import {
  type AttributePath,
  internalName,
  isCore,
  type ResourceSchema,
} from '#protocols/scim/schema/resource-schema.ts'
import { scimError } from '#protocols/scim/schema/scim-error.ts'
import type { AttributeWrite } from '#sdk/flow/flow.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { noVersion } from '#sdk/workflow/workflow.ts'
import { type EffectCheck, entryAfter, refuseDryRunMember, stepsOf, writesIn } from './dry-run.ts'
import type { GatewayConfig } from './gateway-config.ts'
import { type MemberRun, planMembers, previewedId, runMembers } from './group-members.ts'
import { GroupSearch } from './group-search.ts'
import { withMembers } from './group-text.ts'
import type { ListRequest, ResourcePage } from './lists.ts'
import { type FoundGroup, hasManyMembers, idUnderName, type Lookups, type Member } from './lookups.ts'
import {
  ChangePreviewed,
  type GatewayParts,
  type GroupRun,
  groupKey,
  orPreviewed,
  reportProgress,
  retryWhileChanged,
  runGroupWorkflow,
} from './run-workflow.ts'
import {
  addChange,
  describeChange,
  etagHeader,
  namesWithoutValue,
  noContent,
  notFound,
  notModified,
  notSupported,
  projectionOf,
  requireAddress,
  requireMatch,
  resourceAnswer,
  type ScimCall,
} from './scim-call.ts'
import { type ChangeKind, refuseUnknown, requireEffect, storableChange } from './stored-schema.ts'
import type { Settled } from './unfinished-changes.ts'

/** A request about a group, parsed; nothing has been looked up yet. */
interface GroupEdit {
  readonly kind: ChangeKind
  /** Operations on the group itself: its name and attributes. */
  readonly own: readonly PatchOperation[]
  readonly members: readonly PatchOperation[]
}

/** A change of the group itself. */
interface OwnChange {
  readonly displayName: string
  /** Set if the name that workflows know the group by changes. */
  readonly newName: string | undefined
  readonly attributes: Attributes
  /** The internal attributes that lose their values. */
  readonly cleared: readonly string[]
  /** The SCIM attributes that change, and those of them that lose their value. */
  readonly changed: readonly string[]
  readonly withoutValue: readonly string[]
}

/** A group whose creation failed part way. Its id is known if only members are missing. */
interface UnfinishedGroup {
  readonly id?: string
}

/** How long, and for how many groups, a failed creation can be continued. */
const keepMillis = 60 * 60 * 1000
const maxUnfinished = 1000

/**
 * `/Groups` and `/Groups/{id}`. Groups are created, changed and deleted by workflows; an answer shows the group as the
 * target then stores it.
 */
export class GroupEndpoint {
  readonly schema: ResourceSchema
  readonly #parts: GatewayParts
  readonly #search: GroupSearch
  readonly #unfinished = new BoundedCache<UnfinishedGroup>(maxUnfinished, systemClock)

  constructor(parts: GatewayParts) {
    this.schema = parts.config.groups.schema
    this.#parts = parts
    this.#search = new GroupSearch(parts)
  }

  async get(call: ScimCall): Promise<GatewayResponse> {
    const { lookups } = this.#parts
    if (call.ifNoneMatch !== undefined) {
      const { group } = await findGroup(lookups, call.id, false)
      const unchanged = notModified(call, group.version)
      if (unchanged !== undefined) return unchanged
    }
    return this.#show(call, 200, await findGroup(lookups, call.id, this.#wantsMembers(call)))
  }

  search(call: ScimCall, list: ListRequest): Promise<ResourcePage> {
    return this.#search.page(call, list)
  }

  /**
   * Creates the group, then adds its members, one run each. If that fails part way, the same request sent again
   * continues it instead of failing with uniqueness.
   */
  async create(call: ScimCall): Promise<GatewayResponse> {
    const { config, queue, lookups } = this.#parts
    if (config.workflows.createGroup === undefined)
      throw notSupported('Groups cannot be created: this gateway has no groupCreateWorkflow.')
    const resource = readGroup(config, await call.body(), 'create')
    const edit = createEdit(config, resource)
    call.notes.operations = describeEdit(edit)
    const name = displayNameOf(resource)
    requireName(name)
    this.#takeName(call, name)
    if (lookups.groupIdIsName) requireAddress('displayName', name)
    const { members: _, ...own } = resource
    // Equal requests have equal keys: the name or, if groups can share names, everything but the members.
    const key = nameKey(config.groups.sharesNames ? JSON.stringify(own) : name)
    // The lookup is queued too, so that of two requests for one name exactly one creates.
    const { found, runs } = await queue.run(key, () => this.#createWithoutMembers(call, resource, edit, key))
    await queue.run(groupKey(found.id), async () => {
      await this.#addMembers(call, found, runs, key, await this.#settle(call, found.id))
    })
    if (call.dryRun !== undefined) throw new ChangePreviewed()
    const after = await findGroup(lookups, found.id, this.#wantsMembers(call))
    const attributes = Object.keys(resource)
    const details = describeChange(resource, after.group.version)
    addChange(call, { kind: 'create', resourceType: 'Group', id: found.id, attributes, ...details })
    return this.#show(call, 201, after)
  }

  /** All members are known to exist before the group is created. */
  async #createWithoutMembers(
    call: ScimCall,
    resource: JsonObject,
    edit: GroupEdit,
    key: string,
  ): Promise<{ found: FoundGroup; runs: readonly MemberRun[] }> {
    const { config, lookups } = this.#parts
    const settled = await this.#parts.unfinished.settle(call, {
      type: 'Group',
      names: [groupKey(displayNameOf(resource))],
    })
    const unfinished = this.#unfinished.get(key) ?? (settled.hasBegun ? {} : undefined)
    if (config.groups.sharesNames) {
      const present = unfinished?.id === undefined ? undefined : await lookups.groupById(unfinished.id, false)
      const runs = await planMembers(this.#parts, call, present, edit.members)
      return { found: present ?? (await this.#createWithSharedName(call, resource, key, settled)), runs }
    }
    const name = displayNameOf(resource)
    const present = await groupNamed(lookups, name)
    const isUnfinished = unfinished !== undefined && (unfinished.id === undefined || unfinished.id === present?.id)
    if (present !== undefined && !isUnfinished) throw nameTaken()
    const runs = await planMembers(this.#parts, call, present, edit.members)
    if (present !== undefined && unfinished?.id !== undefined) return { found: present, runs }
    return { found: await this.#runCreate(call, name, resource, key, unfinished === undefined, settled), runs }
  }

  /** The name is the displayName or, if another group has that name, the displayName and a random suffix. */
  async #createWithSharedName(
    call: ScimCall,
    resource: JsonObject,
    key: string,
    settled: Settled,
  ): Promise<FoundGroup> {
    const name = displayNameOf(resource)
    if ((await this.#parts.lookups.groupByName(name)) === undefined) {
      try {
        return await this.#runCreate(call, name, resource, key, true, settled)
      } catch (error) {
        // Another process created a group of this name first.
        if (!(error instanceof GatewayError) || error.code !== 'CONFLICT') throw error
      }
    }
    return this.#runCreate(call, `${name} (${randomBytes(4).toString('hex')})`, resource, key, true, settled)
  }

  /** With `isNew`, the run is bound to the absence of the group, so that no other process can create it in between. */
  async #runCreate(
    call: ScimCall,
    name: string,
    resource: JsonObject,
    key: string,
    isNew: boolean,
    settled: Settled,
  ): Promise<FoundGroup> {
    const { config, groups, lookups, storage } = this.#parts
    const workflow = config.workflows.createGroup
    try {
      const stored = await storage.groups()
      const storable = storableChange(stored, {}, { ...resource }, 'create')
      const attributes = groups.attributes(storable, stored.unstorable)
      const params = { groupname: name, ...(isNew ? { groupversion: noVersion } : {}) }
      const check: EffectCheck = async (steps) => {
        const created = entryAfter(stepsOf('group', config.lookup, steps), name, undefined)
        if (created === undefined && (await lookups.groupByName(name)) === undefined) throw notCreated(workflow)
      }
      const run = runGroupWorkflow(this.#parts, call, { name: workflow, attributes, params, settled, check })
      await orPreviewed(run)
      if (call.dryRun !== undefined) return { id: previewedId, group: { id: previewedId, name, members: [] } }
    } catch (error) {
      // After a refusal there is no group. After any other failure, some targets may have created it.
      if (!(error instanceof GatewayError) || !error.isRefusal) this.#remember(call, key, {})
      // Another process created it in between. Where groups share names, the caller chooses another one.
      else if (isNew && !config.groups.sharesNames && (await groupNamed(lookups, name)) !== undefined) throw nameTaken()
      throw error
    }
    const found = await lookups.groupByName(name)
    if (found !== undefined) return found
    throw notCreated(workflow)
  }

  async #addMembers(
    call: ScimCall,
    found: FoundGroup,
    runs: readonly MemberRun[],
    key: string,
    settled: Settled,
  ): Promise<void> {
    const { id, group } = found
    try {
      await reportProgress(this.#parts, call, group.name, 1 + runs.length, async (done) => {
        done()
        await runMembers(this.#parts, call, { group: found, runs, settled }, done)
      })
      if (call.dryRun === undefined) this.#unfinished.delete(key)
    } catch (error) {
      this.#remember(call, key, { id })
      addChange(call, { kind: 'create', resourceType: 'Group', id, attributes: ['displayName', 'members'] })
      throw error
    }
  }

  #remember({ dryRun }: ScimCall, key: string, unfinished: UnfinishedGroup): void {
    if (dryRun !== undefined) return
    this.#unfinished.set(key, unfinished, new Date(systemClock().getTime() + keepMillis))
  }

  async patch(call: ScimCall): Promise<GatewayResponse> {
    const { config } = this.#parts
    const edit = patchEdit(config, await call.body())
    call.notes.operations = describeEdit(edit)
    const isShown = config.client.groupPatch === 'resource' || call.query.has('attributes')
    const changed = await this.#change(call, edit, isShown && this.#wantsMembers(call))
    return isShown ? this.#show(call, 200, changed) : { ...noContent, headers: etagHeader(changed.group.version) }
  }

  async replace(call: ScimCall): Promise<GatewayResponse> {
    const { config } = this.#parts
    const edit = putEdit(config, readGroup(config, await call.body(), 'put'))
    call.notes.operations = describeEdit(edit)
    return this.#show(call, 200, await this.#change(call, edit, this.#wantsMembers(call)))
  }

  /**
   * Checks the whole edit, then changes the group itself, then its members, one run each, under the name that the group
   * then has. Changes of one group run one after the other.
   */
  #change(call: ScimCall, edit: GroupEdit, withMembers: boolean): Promise<FoundGroup> {
    const { queue, lookups } = this.#parts
    return queue.run(groupKey(lookups.ids.groupForm(call.id)), () =>
      retryWhileChanged(call, () => this.#changeNow(call, edit, withMembers)),
    )
  }

  async #changeNow(call: ScimCall, edit: GroupEdit, withMembers: boolean): Promise<FoundGroup> {
    const { config, lookups } = this.#parts
    const settled = await this.#settle(call, call.id)
    const found = await findGroup(lookups, call.id, false)
    const version = requireMatch(call, found.group.version)
    const { resource, own } = await this.#planOwn(call, found, edit)
    const runs = await planMembers(this.#parts, call, found, edit.members)
    const name = own?.newName ?? found.group.name
    const change = {
      kind: edit.kind,
      resourceType: 'Group',
      id: found.id,
      attributes: [...(own?.changed ?? []), ...(runs.some(({ isRepeated }) => isRepeated !== true) ? ['members'] : [])],
      cleared: own?.withoutValue ?? [],
      ...describeChange(resource, undefined),
    } as const
    let isAnyDone = false
    let written: readonly AttributeWrite[] = []
    const steps = async (done: () => void): Promise<void> => {
      const stepDone = (): void => {
        isAnyDone = change.attributes.length > 0
        done()
      }
      if (own !== undefined) {
        const change = this.#changeOwn(call, found, own, resource, version, settled)
        if (call.dryRun === undefined) written = await change
        else await orPreviewed(change)
        stepDone()
      } else if (version !== undefined && runs.length > 0 && config.workflows.updateGroup !== undefined) {
        // Changes nothing, but lets the target compare the version.
        await orPreviewed(this.#runUpdate(call, found, {}, version, settled))
      }
      // A dry run has not renamed it.
      const isRenamed = name !== found.group.name && call.dryRun === undefined
      const renamed = isRenamed ? { ...found, group: { ...found.group, name } } : found
      await runMembers(this.#parts, call, { group: renamed, runs, settled }, stepDone)
    }
    try {
      await reportProgress(this.#parts, call, name, (own === undefined ? 0 : 1) + runs.length, steps)
    } catch (error) {
      if (isAnyDone) addChange(call, change)
      throw error
    }
    if (call.dryRun !== undefined) throw new ChangePreviewed()
    const after = await findGroup(lookups, idUnderName(lookups, found.id, name), withMembers)
    if (own !== undefined) await this.#requireOwnEffect(call, written, found, after, resource)
    if (isAnyDone) {
      const members = call.notes.pending === undefined ? { members: membersIn(runs) } : {}
      const details = describeChange(resource, after.group.version)
      addChange(call, { ...change, ...members, id: after.id, ...details })
    }
    return after
  }

  /** The wanted group without its members; `own` is undefined if the group itself does not change. */
  async #planOwn(
    call: ScimCall,
    found: FoundGroup,
    edit: GroupEdit,
  ): Promise<{ readonly resource: ScimResource; readonly own?: OwnChange }> {
    const { config, groups, lookups, storage } = this.#parts
    const { schema } = config.groups
    const before = await groups.resource(found, call.base, false)
    if (edit.own.length === 0) return { resource: before }
    const patched = applyPatch(schema, before, edit.own, { strict: config.client.strict })
    const stored = await storage.groups()
    const resource = storableChange(stored, before, patched, edit.kind)
    const present = found.group.attributes ?? new Attributes()
    const { isChanged, attributes, cleared } = groups.change(present, before, resource, stored.unstorable)
    const displayName = displayNameOf(resource)
    const isRenamed = displayName !== displayNameOf(before)
    const writesElsewhere = this.#parts.unfinished.writesElsewhere(config.workflows.updateGroup)
    if (!isRenamed && !isChanged && !writesElsewhere) return { resource }
    if (config.workflows.updateGroup === undefined) {
      throw scimError(
        'mutability',
        'The name and attributes of groups cannot be changed: this gateway has no groupUpdateWorkflow.',
      )
    }
    const newName = isRenamed && groups.displayAttribute === undefined ? displayName : undefined
    // Another letter case leaves the id as it is.
    if (newName !== undefined && lookups.groupIdIsName && newName.toLowerCase() !== found.group.name.toLowerCase()) {
      throw scimError(
        'mutability',
        'displayName cannot be changed: it is the id of the group here. Create another group instead.',
      )
    }
    if (isRenamed) {
      requireName(displayName)
      this.#takeName(call, displayName)
      await this.#requireFreeName(displayName, found)
    }
    const refs = changedAttributes(schema, before, resource)
    const own = {
      displayName,
      newName,
      attributes: isChanged ? attributes : new Attributes(),
      cleared,
      changed: refs.map(internalName),
      withoutValue: namesWithoutValue(resource, refs),
    }
    return { resource, own }
  }

  async #changeOwn(
    call: ScimCall,
    found: FoundGroup,
    own: OwnChange,
    wanted: JsonObject,
    version: string | undefined,
    settled: Settled,
  ): Promise<readonly AttributeWrite[]> {
    const { group } = found
    const check: EffectCheck = async (steps) => {
      const entries = stepsOf('group', this.#parts.config.lookup, steps)
      const after = entryAfter(entries, group.name, group.attributes ?? new Attributes())
      if (after === undefined) throw notFound('group', found.id)
      await this.#requireOwnEffect(call, writesIn(entries), found, { ...found, group: { ...group, ...after } }, wanted)
    }
    // Checked again in the queue of the name, so that of two requests for one name exactly one gets it.
    return await this.#parts.queue.runWithin(nameKey(own.displayName), async () => {
      await this.#requireFreeName(own.displayName, found)
      return await this.#runUpdate(call, found, own, version, settled, check)
    })
  }

  #runUpdate(
    call: ScimCall,
    found: FoundGroup,
    own: Partial<OwnChange>,
    version: string | undefined,
    settled: Settled,
    check?: EffectCheck,
  ): Promise<readonly AttributeWrite[]> {
    const { group } = found
    const { attributes = new Attributes(), cleared = [], newName = group.name } = own
    return this.#runOn(call, found, {
      name: this.#parts.config.workflows.updateGroup,
      attributes,
      cleared,
      params: { groupname: group.name, newgroupname: newName, ...identityOf(group, version) },
      settled,
      ...(check === undefined ? {} : { check }),
    })
  }

  /** Targets know groups by name. One that has got another name meanwhile is still there, so it is read again. */
  async #runOn(call: ScimCall, { id, group }: FoundGroup, run: GroupRun): Promise<readonly AttributeWrite[]> {
    try {
      return await runGroupWorkflow(this.#parts, call, run)
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'NOT_FOUND') throw error
      const present = await this.#parts.lookups.groupById(id, false)
      if (present === undefined) throw notFound('group', id)
      if (present.group.name !== group.name) {
        throw new GatewayError('VERSION_MISMATCH', `the group ${group.name} was renamed meanwhile`, { cause: error })
      }
      throw new GatewayError('WORKFLOW_FAILED', `a target of workflow "${run.name}" lacks the group`, {
        cause: error,
        publicText: `A target of workflow "${run.name}" has no such group. Create it there, then send the request again.`,
      })
    }
  }

  /** For a dry run of several operations. */
  #takeName({ dryRun }: ScimCall, name: string): void {
    if (!this.#parts.config.groups.sharesNames) dryRun?.take('Group displayName', name.toLowerCase())
  }

  /** Throws uniqueness if another group has the name, in any letter case. */
  async #requireFreeName(name: string, { id }: FoundGroup): Promise<void> {
    if (this.#parts.config.groups.sharesNames) return
    const present = await groupNamed(this.#parts.lookups, name)
    if (present !== undefined && present.id.toLowerCase() !== id.toLowerCase()) throw nameTaken()
  }

  /** Throws WORKFLOW_FAILED if the group itself did not change. */
  async #requireOwnEffect(
    call: ScimCall,
    written: readonly AttributeWrite[],
    found: FoundGroup,
    changed: FoundGroup,
    wanted: JsonObject,
  ): Promise<void> {
    const { groups, storage } = this.#parts
    requireEffect(await storage.groups(), {
      before: await groups.resource(found, call.base, false),
      wanted,
      written,
      after: await groups.resource(changed, call.base, false),
      stored: {
        before: found.group.attributes ?? new Attributes(),
        after: changed.group.attributes ?? new Attributes(),
      },
    })
  }

  async delete(call: ScimCall): Promise<void> {
    const { queue, config, lookups } = this.#parts
    const name = config.workflows.deleteGroup
    if (name === undefined) throw notSupported('Groups cannot be deleted: this gateway has no groupDeleteWorkflow.')
    const remove = async (): Promise<void> => {
      const settled = await this.#settle(call, call.id)
      if (settled.hasBegun && (await lookups.groupById(call.id, false)) === undefined) return
      const found = await findGroup(lookups, call.id, false)
      const { id, group } = found
      const version = requireMatch(call, group.version)
      const params = { groupname: group.name, ...identityOf(group, version) }
      const check: EffectCheck = (steps) => {
        if (stepsOf('group', config.lookup, steps).length === 0) throw notDeleted(name)
      }
      await this.#runOn(call, found, { name, params, settled, check })
      const present = await lookups.groupById(id, false)
      if (present !== undefined && present.group.version === group.version) throw notDeleted(name)
      addChange(call, { kind: 'delete', resourceType: 'Group', id, attributes: [] })
    }
    await queue.run(groupKey(lookups.ids.groupForm(call.id)), () => retryWhileChanged(call, remove))
  }

  /** Throws TARGET_UNREACHABLE while an earlier change of the group is unfinished. */
  async #settle(call: ScimCall, id: string): Promise<Settled> {
    const { unfinished, lookups } = this.#parts
    const present = unfinished.arePossible ? await lookups.groupById(id, false) : undefined
    const names = present === undefined ? [] : [groupKey(present.group.name)]
    const isAbsent = present === undefined
    return await unfinished.settle(call, { type: 'Group', id: lookups.ids.groupForm(id), names, isAbsent })
  }

  #wantsMembers(call: ScimCall): boolean {
    return projectionOf(call, this.schema)?.wants('members') ?? true
  }

  /** The members of a large group are read and written part by part while the client receives them. */
  async #show(call: ScimCall, status: 200 | 201, found: FoundGroup): Promise<GatewayResponse> {
    const { groups, lookups } = this.#parts
    const wantsMembers = this.#wantsMembers(call)
    const inParts = wantsMembers && hasManyMembers(found)
    const resource = await groups.resource(found, call.base, wantsMembers && !inParts)
    const projection = projectionOf(call, this.schema)
    const response = resourceAnswer(call, status, resource, found.group.version, projection)
    if (!inParts || typeof response.body !== 'string') return response
    const elements = (members: readonly Member[]) => groups.memberElements(members, call.base, projection)
    return { ...response, body: withMembers(response.body, lookups.memberPages(found), elements) }
  }
}

/** Members in one request; the size of the body limits them first. */
const maxMembers = 100_000

function readGroup(config: GatewayConfig, body: JsonValue, kind: 'create' | 'put'): ScimResource {
  const { schema } = config.groups
  const resource = readResource(schema, body, readOptions(config, kind))
  requireAttributes(schema, resource)
  return resource
}

const readOptions = ({ client, groups, ignored }: GatewayConfig, kind: ChangeKind): ReadOptions => ({
  readOnly: 'drop',
  maxValues: maxMembers,
  strict: client.strict,
  unknown: refuseUnknown(groups.schema, kind, ignored),
  refuseEmpty: true,
})

/** Adds the members to a new group. */
function createEdit({ groups }: GatewayConfig, sent: JsonObject): GroupEdit {
  const operations = Array.from(groups.schema.attributes()).flatMap((target): PatchOperation[] => {
    const value = readAttribute(sent, target)
    return value === undefined ? [] : [{ op: 'add', target, value }]
  })
  return editOf('create', operations)
}

/** Attributes that the client leaves out are cleared, unless groups cannot be changed here. */
function putEdit({ groups, workflows }: GatewayConfig, sent: JsonObject): GroupEdit {
  const operations = Array.from(groups.schema.attributes()).flatMap((target): PatchOperation[] => {
    const { mutability, required, type } = target.attribute
    const value = readAttribute(sent, target)
    if (mutability === 'readOnly') return []
    const stays = required || (workflows.updateGroup === undefined && !isMembers(target))
    const whole = value === undefined || (type === 'complex' && !isMembers(target))
    return [
      ...(whole && !stays ? [{ op: 'remove', target } as const] : []),
      ...(value === undefined ? [] : [{ op: 'replace', target, value } as const]),
    ]
  })
  return editOf('put', operations)
}

/** Throws what parsePatch throws, and mutability for a `remove` of all members if the client's profile refuses it. */
function patchEdit(config: GatewayConfig, body: JsonValue): GroupEdit {
  const { groups, client } = config
  refuseDryRunMember(body)
  const operations = parsePatch(groups.schema, body, readOptions(config, 'patch'))
  if (client.removeAllMembers === 'refuse' && removesAllMembers(groups.schema, body)) {
    throw scimError('mutability', 'members: this client cannot remove all members at once. Name the members to remove.')
  }
  return editOf('patch', operations)
}

/**
 * Whether there is a `remove` of `members` without values. Read from the message itself, because a parsed `replace` with
 * an empty list looks the same, and that one is deliberate.
 */
function removesAllMembers(schema: ResourceSchema, body: JsonValue): boolean {
  const list = isJsonObject(body) ? lowerCased(body)['operations'] : undefined
  const operations: readonly JsonValue[] = Array.isArray(list) ? list : []
  return operations.filter(isJsonObject).some((operation) => {
    const { op, path, value } = lowerCased(operation)
    if (typeof op !== 'string' || op.toLowerCase() !== 'remove' || typeof path !== 'string') return false
    const target = schema.resolveAttribute(path.trim())
    return target !== undefined && isMembers(target) && target.sub === undefined && (value ?? null) === null
  })
}

const lowerCased = (object: JsonObject): Partial<Record<string, JsonValue>> =>
  Object.fromEntries(Object.entries(object).map(([name, value]) => [name.toLowerCase(), value]))

const isMembers = (path: AttributePath): boolean => isCore(path, 'members')

function editOf(kind: ChangeKind, operations: readonly PatchOperation[]): GroupEdit {
  const onMembers = ({ target }: PatchOperation): boolean => isMembers(target)
  return { kind, own: operations.filter((one) => !onMembers(one)), members: operations.filter(onMembers) }
}

/** The edit for the journal: operations, attributes and the number of members, without values. */
function describeEdit({ own, members }: GroupEdit): JsonValue {
  const described: { op: string; path: string; count?: number }[] = own.map(({ op, target }) => ({
    op,
    path: internalName(target),
  }))
  for (const operation of members) {
    const { op } = operation
    const values = op === 'remove' ? operation.values : operation.value
    const count = Array.isArray(values) ? values.length : operation.target.filter === undefined ? 0 : 1
    const last = described.at(-1)
    if (last?.op === op && last.path === 'members') last.count = (last.count ?? 0) + count
    else described.push({ op, path: 'members', count })
  }
  return described
}

async function findGroup(lookups: Lookups, id: string, members: boolean): Promise<FoundGroup> {
  const found = await lookups.groupById(id, members)
  if (found === undefined) throw notFound('group', id)
  return found
}

/** The group whose name or displayName this is, in any letter case. */
async function groupNamed(lookups: Lookups, name: string): Promise<FoundGroup | undefined> {
  const byName = await lookups.groupByName(name)
  if (byName !== undefined) return byName
  const filters = lookups.names.groupName.map((attribute): Filter => ({ kind: 'equal', attribute, value: name }))
  const [only] = filters
  const filter = filters.length === 1 && only !== undefined ? only : ({ kind: 'or', filters } as const)
  return (await lookups.searchGroups({ filter, offset: 0, limit: 1 })).items[0]
}

const displayNameOf = (resource: JsonObject): string => String(resource['displayName'] ?? '')

const nameKey = (name: string): string => `groupname ${name.toLowerCase()}`

function requireName(name: string): void {
  if (name.trim() === '') throw scimError('invalidValue', 'displayName must not be blank. Send a name.')
}

const notCreated = (workflow: string | undefined): GatewayError =>
  new GatewayError('WORKFLOW_FAILED', `workflow "${workflow}" ended without creating the group`, {
    publicText: 'The workflow ended without creating the group. Check its tasks, then send the request again.',
  })

const notDeleted = (workflow: string): GatewayError =>
  new GatewayError('WORKFLOW_FAILED', `workflow "${workflow}" ended, but the group is still there`, {
    publicText: `The delete workflow "${workflow}" ended, but the group is still there. Have the workflow delete the group.`,
  })

const nameTaken = () =>
  scimError(
    'uniqueness',
    'displayName: another group has this name, in this or another letter case. Choose another one, or change that group.',
  )

/** Workflow parameters that bind a run to this group and, if the client sent one, to its version. */
const identityOf = ({ id }: Group, version: string | undefined): Record<string, string> => ({
  groupid: id,
  ...(version === undefined ? {} : { groupversion: version }),
})

/** The members that joined and left, for events. */
function membersIn(runs: readonly MemberRun[]) {
  const members = (removed: boolean) =>
    runs
      .filter(({ remove, isRepeated }) => remove === removed && isRepeated !== true)
      .map(({ type, id }) => ({ type, id }))
  return { added: members(false), removed: members(true) }
}
