import type { ScimHost } from '#features/scim/host.ts'
import type { EntryType } from '#features/scim/types/entry-type.ts'
import type { Attributes } from '#identity/attributes.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { nearestName, suggestion } from '#kernel/suggest.ts'
import {
  readAttribute,
  readPath,
  type ScimResource,
  sameValue,
  writeAttribute,
} from '#protocols/scim/schema/resource.ts'
import {
  type AttributePath,
  type AttributeRef,
  internalName,
  isCore,
  pathKey,
  type ResourceSchema,
} from '#protocols/scim/schema/resource-schema.ts'
import { defaultSubAttribute, type SchemaAttribute } from '#protocols/scim/schema/schema.ts'
import { quoted, scimError } from '#protocols/scim/schema/scim-error.ts'
import { enterpriseUserSchema } from '#protocols/scim/schema/standard-schemas.ts'
import type { AttributeFlow, AttributeWrite, FlowProblem, WorkflowWrites } from '#sdk/flow/flow.ts'
import { hasPasswords, type StorableAttributes, type TargetSource } from '#sdk/target/target.ts'
import { unknownWrites } from '#sdk/workflow/workflow-writes.ts'
import { announcedSchema, limitedGroups, withCore } from './announced-schema.ts'
import { refuseDryRunName } from './dry-run.ts'
import type { GatewayConfig, IgnoredAttributes, ServedConfig } from './gateway-config.ts'
import type { Lookups } from './lookups.ts'
import type { FilterNames } from './mapping-config.ts'
import type { PlainList } from './plain-list.ts'
import type { SchemaMapping } from './schema-mapping.ts'

export type ChangeKind = 'create' | 'patch' | 'put'

/**
 * What this gateway stores of one resource type. An attribute is stored if the mapping produces an internal attribute from
 * it, the workflow writes that, and a target of the workflow can store it.
 */
export interface StoredSchema {
  /** All attributes that clients may send. */
  readonly schema: ResourceSchema
  /** Those of them that nothing stores, and that are dropped without an error. */
  readonly ignored: IgnoredAttributes
  /** The workflow that writes the resource. */
  readonly workflow: string
  /** Undefined for groups. */
  readonly type: EntryType | undefined
  /** Exactly the attributes that are stored or shown, for `/Schemas`. */
  readonly announced: ResourceSchema
  /** Why the attribute cannot be stored, and what to do; undefined if it can. */
  whyNot(path: AttributePath): string | undefined
  /** The internal attributes that the mapping produces from it. */
  namesOf(path: AttributePath): readonly string[]
  /** Whether the store that is read has got the internal attribute by one of these writes. */
  wasWritten(name: string, written: readonly AttributeWrite[]): boolean
  /** Whether a client can read the attribute. */
  isShown(path: AttributePath): boolean
  /** What of the new elements of a list can be stored. Throws invalidValue for elements that can't be. */
  accepted(list: PlainList, before: JsonObject, after: JsonObject): JsonValue
  /** The list in plain attributes; undefined for any other attribute. */
  listAt(path: AttributePath): PlainList | undefined
  /** Internal attributes of the built-in mapping that no target can store. */
  readonly unstorable: readonly string[]
}

/** What lists of one resource type can be filtered and sorted by. */
export interface Searchable {
  /** Whether the store that is read has the internal attribute, so that it can evaluate conditions on it. */
  stores(name: string): boolean
  /** Whether the store that is read has a place for the internal attribute. */
  isRead(name: string): boolean
  /** Whether the internal attribute never has several values there. */
  isSingle(name: string): boolean
  /** Why no resource can have the attribute, and what to do; undefined if one can. */
  whyNone(path: AttributePath): string | undefined
}

/** The internal attributes that are produced from each SCIM attribute. */
class Sources {
  readonly #names = new Map<string, string[]>()

  add(path: AttributePath, name: string): void {
    const known = this.#names.get(pathKey(path)) ?? []
    if (!known.includes(name)) this.#names.set(pathKey(path), [...known, name])
  }

  /** From exactly this attribute or part. */
  at(path: AttributePath): readonly string[] {
    return this.#names.get(pathKey(path)) ?? []
  }

  /** From this attribute, from the one it is a part of, or from its parts. */
  of(path: AttributePath): readonly string[] {
    const { sub, ...whole } = path
    const parts = sub === undefined ? whole.attribute.subAttributes.map((one) => ({ ...whole, sub: one })) : [whole]
    return [...new Set([path, ...parts].flatMap((one) => this.at(one)))]
  }
}

function userSources({ users, toInternal }: GatewayConfig): Sources {
  const sources = builtInSources(users.mapping)
  for (const read of toInternal.reads) {
    const path = users.schema.resolveAttribute(read.attribute)
    if (path === undefined) continue
    const subs = path.attribute.subAttributes.filter(({ name }) => read.parts?.includes(name) === true)
    const paths = path.sub === undefined && subs.length > 0 ? subs.map((sub) => ({ ...path, sub })) : [path]
    for (const made of toInternal.produces) {
      if (made.path === read.path) for (const one of paths) sources.add(one, made.attribute)
    }
  }
  return sources
}

function groupSources({ schema, mapping, filterNames }: GatewayConfig['groups']): Sources {
  const sources = builtInSources(mapping)
  for (const ref of schema.attributes()) {
    const name = filterNames.get(pathKey(ref))
    if (name !== undefined && ref.attribute.type !== 'complex') sources.add(ref, name)
  }
  return sources
}

function builtInSources(mapping: SchemaMapping): Sources {
  const sources = new Sources()
  for (const path of mapping.taken) {
    for (const name of mapping.namesAt(path)) if (mapping.produces.includes(name)) sources.add(path, name)
  }
  return sources
}

type Storable = ReadonlyMap<string, StorableAttributes>

/** Describes one resource type for its StoredSchema. */
interface ResourceStorage {
  readonly kind: 'users' | 'groups'
  readonly type: EntryType | undefined
  readonly schema: ResourceSchema
  readonly mapping: SchemaMapping
  readonly sources: Sources
  /** The keys of the paths that are shown without the built-in mapping. */
  readonly named: ReadonlySet<string>
  /** The parts of these that are shown, where that is known. */
  readonly parts: ReadonlyMap<string, ReadonlySet<string>>
  readonly filterNames: FilterNames
  /** Attributes that the gateway handles itself. */
  readonly own: readonly string[]
  readonly workflow: string
  readonly writesOf: (attribute: string) => readonly AttributeWrite[] | 'unknown'
}

/** Asks the targets what they can store, and caches the schemas that follow from it. */
export class GatewayStorage {
  /** The workflow sets passwords, and a target accepts them. */
  readonly setsPasswords: boolean
  readonly #config: GatewayConfig
  readonly #lookups: Lookups
  readonly #targets: TargetSource
  readonly #storages: { readonly users: ResourceStorage; readonly groups: ResourceStorage }
  readonly #targetNames: readonly string[]
  #known: { readonly answers: Answers; readonly schemas: Schemas } | undefined
  readonly #searched = new Map<'users' | 'groups', { readonly answers: Answers; readonly of: Searchable }>()

  constructor(config: GatewayConfig, lookups: Lookups, host: ScimHost) {
    const { workflows, lookup, users, groups } = config
    this.#config = config
    this.#lookups = lookups
    this.#targets = host.targets
    const groupWorkflow = workflows.updateGroup ?? workflows.createGroup
    const userWrites = host.workflowWrites(workflows.user)
    const groupWrites = groupWorkflow === undefined ? unknownWrites : host.workflowWrites(groupWorkflow)
    this.#storages = {
      users: {
        kind: 'users',
        type: users.type,
        schema: users.schema,
        mapping: users.mapping,
        sources: userSources(config),
        named: new Set(Array.from(config.scimPaths.values(), pathKey)),
        parts: config.shownParts,
        filterNames: users.filterNames,
        own: [users.type.nameAttribute],
        workflow: workflows.user,
        writesOf: (name) => userWrites.ofUser(name),
      },
      groups: {
        kind: 'groups',
        type: undefined,
        schema: groups.schema,
        mapping: groups.mapping,
        sources: groupSources(groups),
        named: new Set(groups.filterNames.keys()),
        parts: new Map(),
        filterNames: groups.filterNames,
        own: ['displayName', 'members'],
        workflow: groupWorkflow ?? '',
        writesOf: (name) => groupWrites.ofGroup(name),
      },
    }
    const { passwords } = userWrites
    this.setsPasswords = passwords === 'unknown' || passwords.some((name) => hasPasswords(host.targets.get(name)))
    const written = [
      ...users.produces.map((name) => userWrites.ofUser(name)),
      ...[...groups.mapping.produces, ...groups.filterNames.values()].map((name) => groupWrites.ofGroup(name)),
    ]
    const names = written.flatMap((writes) => (writes === 'unknown' ? [] : writes.map(({ target }) => target)))
    this.#targetNames = [...new Set([...names, ...(lookup.kind === 'target' ? [lookup.name] : [])])]
  }

  /** What targets give the attribute of a user that has no value of it. */
  defaultValues(attribute: string, user: User): readonly string[] {
    return this.#targetNames.flatMap((name) => this.#targets.get(name).defaultValue?.(attribute, user) ?? [])
  }

  /** Throws TARGET_UNREACHABLE while a target cannot report what it stores. */
  async users(): Promise<StoredSchema> {
    return (await this.#schemas()).users
  }

  async groups(): Promise<StoredSchema> {
    return (await this.#schemas()).groups
  }

  /** Asks only the target that is read, so that lists do not depend on others. */
  async searchable(kind: 'users' | 'groups'): Promise<Searchable> {
    const { lookup } = this.#config
    const { answers, storable } = await this.#ask(lookup.kind === 'target' ? [lookup.name] : this.#targetNames)
    const known = this.#searched.get(kind)
    if (known?.answers.every((answer, i) => answer === answers[i])) return known.of
    const of = storedAttributes(this.#storages[kind], storable, this.#config)
    this.#searched.set(kind, { answers, of })
    return of
  }

  async #ask(names: readonly string[]): Promise<{ readonly answers: Answers; readonly storable: Storable }> {
    const answers = await inParallel(names, 8, async (name) => this.#targets.get(name).storable?.())
    const storable = new Map(names.flatMap((name, i) => (answers[i] === undefined ? [] : [[name, answers[i]]])))
    return { answers, storable }
  }

  async #schemas(): Promise<Schemas> {
    const { answers, storable } = await this.#ask(this.#targetNames)
    const known = this.#known
    if (known?.answers.every((answer, i) => answer === answers[i])) return known.schemas
    const schemas = { users: this.#userSchema(storable), groups: this.#groupSchema(storable) }
    this.#known = { answers, schemas }
    return schemas
  }

  #userSchema(storable: Storable): StoredSchema {
    const { users, toInternal } = this.#config
    const storage = this.#storages.users
    const { sources, named, workflow } = storage
    const stored = storedAttributes(storage, storable, this.#config)
    const announced = announcedSchema(users.schema, {
      whole: (path) => stored.isOwn(path) || (isCore(path, 'groups') && users.showsGroups && !users.mapping.isEmpty),
      shape: stored.shape,
      reads: stored.reads,
      writes: (path) => {
        if (isCore(path, 'password')) return this.setsPasswords
        return sources.at(path).length > 0 ? stored.writes(path) : toInternal.opaque && named.has(pathKey(path))
      },
    })
    return {
      ...stored,
      announced: this.#lookups.renamesUsers
        ? announced
        : withCore(announced, users.type.nameAttribute, { mutability: 'immutable' }),
      whyNot: (path) => {
        if (isCore(path, 'password')) return this.setsPasswords ? undefined : noPassword(workflow)
        return toInternal.opaque ? undefined : stored.whyNot(path)
      },
    }
  }

  #groupSchema(storable: Storable): StoredSchema {
    const { groups, workflows } = this.#config
    const stored = storedAttributes(this.#storages.groups, storable, this.#config)
    const { isOwn: whole, reads, writes, shape } = stored
    const uniqueness = groups.sharesNames ? 'none' : 'server'
    const fixed = this.#lookups.groupIdIsName ? ({ mutability: 'immutable' } as const) : {}
    const listed = withCore(announcedSchema(groups.schema, { whole, shape, reads, writes }), 'displayName', {
      uniqueness,
      ...fixed,
    })
    return { ...stored, announced: limitedGroups(listed, workflows) }
  }
}

type Answers = readonly (StorableAttributes | undefined)[]

interface Schemas {
  readonly users: StoredSchema
  readonly groups: StoredSchema
}

/** Where the internal attributes of one resource type are written to and read from. */
class AttributePlaces {
  readonly #storage: ResourceStorage
  readonly #storable: Storable
  readonly #lookup: GatewayConfig['lookup']

  constructor(storage: ResourceStorage, storable: Storable, lookup: GatewayConfig['lookup']) {
    this.#storage = storage
    this.#storable = storable
    this.#lookup = lookup
  }

  #canStore(target: string, attribute: string): boolean {
    const known = this.#storable.get(target)?.[this.#storage.kind]
    return known === undefined || known === 'any' || known.has(attribute.toLowerCase())
  }

  #isStored({ target, attribute }: AttributeWrite): boolean {
    return this.#canStore(target, attribute)
  }

  isWritten(name: string): boolean {
    const writes = this.#storage.writesOf(name)
    return writes === 'unknown' || writes.some((write) => this.#isStored(write))
  }

  isRead(name: string): boolean {
    return this.#lookup.kind !== 'target' || this.#canStore(this.#lookup.name, name)
  }

  /** A directory has places for all. */
  isAnyRead(names: readonly string[]): boolean {
    return this.#lookup.kind !== 'target' || names.some((name) => this.isRead(name))
  }

  isSingle(name: string): boolean {
    if (this.#lookup.kind !== 'target') return false
    return this.#storable.get(this.#lookup.name)?.single?.[this.#storage.kind].has(name.toLowerCase()) === true
  }

  /** What is read is what was written. */
  stores(name: string): boolean {
    const lookup = this.#lookup
    const writes = this.#storage.writesOf(name)
    if (writes === 'unknown') return this.isRead(name)
    if (lookup.kind !== 'target') return writes.some((write) => this.#isStored(write))
    const isSame = ({ target, attribute }: AttributeWrite) =>
      target === lookup.name && attribute.toLowerCase() === name.toLowerCase()
    return this.isRead(name) && writes.some(isSame)
  }
}

/** The attributes of one resource type that clients can read, or find resources by. */
class ShownAttributes {
  readonly #storage: ResourceStorage
  readonly #places: AttributePlaces
  readonly #builtIn: ReadonlySet<string>

  constructor(storage: ResourceStorage, places: AttributePlaces) {
    this.#storage = storage
    this.#places = places
    this.#builtIn = new Set(storage.mapping.shown.map(pathKey))
  }

  isOwn(path: AttributePath): boolean {
    return this.#storage.own.some((name) => isCore(path, name))
  }

  #isNamed({ sub, ...whole }: AttributePath): boolean {
    const { named, parts } = this.#storage
    if (sub === undefined) return named.has(pathKey(whole))
    const isShownWhole = named.has(pathKey(whole)) && parts.get(pathKey(whole))?.has(sub.name) !== false
    return isShownWhole || named.has(pathKey({ ...whole, sub }))
  }

  #isBuiltIn(path: AttributePath): boolean {
    if (!this.#builtIn.has(pathKey(path))) return false
    return this.#places.isAnyRead(this.#storage.mapping.namesAt(path))
  }

  #hasPart(whole: AttributeRef, sub: SchemaAttribute): boolean {
    const list = this.#storage.mapping.listAt(whole)
    return list === undefined || list.isDerived(sub) || list.namesOf(sub).length > 0
  }

  reads(path: AttributePath): boolean {
    const { sub, ...whole } = path
    if (this.#isNamed(path) || this.#isBuiltIn(path)) return true
    return sub !== undefined && this.#isBuiltIn(whole) && this.#hasPart(whole, sub)
  }

  isShown(path: AttributePath): boolean {
    const subs = path.sub === undefined ? path.attribute.subAttributes.map((one) => ({ ...path, sub: one })) : []
    return this.isOwn(path) || [path, ...subs].some((one) => this.reads(one))
  }

  #isFiltered(path: AttributePath): boolean {
    const name = this.#storage.filterNames.get(pathKey(path))
    return name !== undefined && this.#places.isRead(name)
  }

  /** Whether a resource can have the attribute. */
  isKnown(path: AttributePath): boolean {
    const { type, schema, mapping } = this.#storage
    const { attribute, extension } = path
    const isOther = extension !== undefined && !schema.extensions.some(({ id }) => id === extension)
    const isGroups = type?.isCustom === false && !mapping.isEmpty && isCore(path, 'groups')
    const isSet = isGroups || ['id', 'meta', 'schemas'].some((name) => isCore(path, name))
    // The other parts of a manager come from the manager's own resource.
    const isManager = extension === enterpriseUserSchema.id && attribute.name === 'manager'
    const parts = partsOf(isManager ? { attribute, extension } : path)
    if (isOther || isSet || this.isOwn(path)) return true
    // A part that is not shown has no value, and that is what a filter finds.
    return parts.some((one) => this.reads(one)) || partsOf(path).some((one) => this.#isFiltered(one))
  }
}

function storedAttributes(storage: ResourceStorage, storable: Storable, { lookup, ignored }: GatewayConfig) {
  const { kind, type, schema, mapping, sources, workflow, writesOf } = storage
  const places = new AttributePlaces(storage, storable, lookup)
  const shown = new ShownAttributes(storage, places)
  const isWritten = (name: string): boolean => places.isWritten(name)
  const problem = (path: AttributePath, names: readonly string[]): string | undefined => {
    const attribute = internalName(path)
    const ignore = `or list "${attribute}" in ignoreUnmapped`
    if (names.length === 0) {
      const remedy =
        kind === 'users'
          ? `Add a line of scim2tremolo that reads "${attribute}", ${ignore}.`
          : `Give it a name by groupFilterScim2Ldap, ${ignore}.`
      return `"${attribute}" is not mapped, so it cannot be stored. ${remedy}`
    }
    if (names.some(isWritten)) return undefined
    const [first = attribute] = names
    return names.some((name) => writesOf(name).length > 0)
      ? `"${attribute}" cannot be stored: the target has no place for "${first}". Give it one, ${ignore}.`
      : `"${attribute}" cannot be stored: workflow "${workflow}" does not write "${first}". Add it to a provision task, ${ignore}.`
  }
  return {
    schema,
    ignored,
    workflow,
    type,
    isOwn: (path: AttributePath): boolean => shown.isOwn(path),
    reads: (path: AttributePath): boolean => shown.reads(path),
    stores: (name: string): boolean => places.stores(name),
    whyNone: (path: AttributePath): string | undefined => {
      if (shown.isKnown(path) || ignored.has(path)) return undefined
      const attribute = internalName(path)
      return `"${attribute}" is neither stored nor shown by this gateway, so no resource can be found by it. Use an attribute of /Schemas, map "${attribute}", or list it in ignoreUnmapped, which makes it an attribute without values.`
    },
    writes: (path: AttributePath): boolean =>
      sources.at(path).length > 0 && problem(path, sources.at(path)) === undefined,
    whyNot: (path: AttributePath): string | undefined =>
      shown.isOwn(path) || path.attribute.mutability === 'readOnly' ? undefined : problem(path, sources.of(path)),
    namesOf: (path: AttributePath): readonly string[] => sources.of(path),
    wasWritten: (name: string, written: readonly AttributeWrite[]): boolean => {
      const writes = writesOf(name)
      return written.some(({ target, attribute }) => {
        if (lookup.kind === 'target' && target !== lookup.name) return false
        const isSame = (one: string): boolean => one.toLowerCase() === attribute.toLowerCase()
        return writes === 'unknown'
          ? isSame(name)
          : writes.some((one) => one.target === target && isSame(one.attribute))
      })
    },
    listAt: (path: AttributePath): PlainList | undefined => mapping.listAt(path),
    shape: (path: AttributePath): SchemaAttribute => mapping.listAt(path)?.announced(isWritten) ?? path.attribute,
    accepted: (list: PlainList, before: JsonObject, after: JsonObject): JsonValue => {
      const isIgnored = (part: AttributePath): boolean => ignored.has(part)
      const [was, is] = [elementsOf(before, list.ref), elementsOf(after, list.ref)]
      return list.accept(is, was, { canStore: isWritten, isIgnored })
    },
    isShown: (path: AttributePath): boolean => shown.isShown(path),
    isRead: (name: string): boolean => places.isRead(name),
    isSingle: (name: string): boolean => places.isSingle(name),
    unstorable: mapping.produces.filter((name) => writesOf(name).length > 0 && !isWritten(name)),
  }
}

/** The attribute, with the part that is named, or with all of its parts. */
function partsOf(path: AttributePath): readonly AttributePath[] {
  const { sub, ...whole } = path
  return [whole, ...(sub === undefined ? whole.attribute.subAttributes.map((one) => ({ ...whole, sub: one })) : [path])]
}

const noPassword = (workflow: string): string =>
  `"password" cannot be stored: workflow "${workflow}" sets none. Add setPassword to a provision task, or list "password" in ignoreUnmapped.`

/**
 * The wanted resource without attributes that cannot be stored. A change of such an attribute is refused: with invalidPath
 * in a PATCH, with invalidValue in a PUT. It is dropped if the gateway ignores the attribute, if a PUT leaves the attribute
 * out, and in a create, whose answer shows what was stored. An account without a mapped `active` is active.
 */
export function storableChange(
  stored: StoredSchema,
  before: JsonObject,
  after: ScimResource,
  kind: ChangeKind,
): ScimResource {
  const result: ScimResource = { ...after }
  for (const path of changedPaths(stored.schema, before, after)) {
    const reason = stored.whyNot(path)
    if (reason === undefined) {
      const list = stored.listAt(path)
      if (list !== undefined) putAt(result, path, stored.accepted(list, before, after))
      else if (kind !== 'create') requireParts(stored, path, after, kind)
      continue
    }
    const isActive = stored.type?.isCustom === false && isCore(path, 'active')
    const value = readPath(after, path) ?? (isActive ? true : undefined)
    const isSame = isActive && value === (readPath(before, path) ?? true)
    const isDropped =
      stored.ignored.has(path) || (kind === 'create' ? !isActive : kind === 'put' && value === undefined)
    if (!isSame && !isDropped) throw scimError(kind === 'patch' ? 'invalidPath' : 'invalidValue', reason)
    putAt(result, path, readPath(before, path))
  }
  return result
}

/** Throws if elements of a list have a part that is not announced, which would be lost. */
function requireParts(stored: StoredSchema, path: AttributePath, after: JsonObject, kind: ChangeKind): void {
  const elements = elementsOf(after, path).filter(isJsonObject)
  const announced = stored.announced.resolveAttribute(internalName(path))?.attribute.subAttributes ?? []
  for (const sub of path.attribute.subAttributes) {
    const isKnown = sub.mutability === 'readOnly' || announced.some(({ name }) => name === sub.name)
    if (isKnown || stored.ignored.has({ ...path, sub })) continue
    const reason = elements.some((one) => (one[sub.name] ?? null) !== null) && stored.whyNot({ ...path, sub })
    if (typeof reason === 'string') throw scimError(kind === 'patch' ? 'invalidPath' : 'invalidValue', reason)
  }
}

interface Effect {
  readonly before: JsonObject
  readonly wanted: JsonObject
  readonly after: JsonObject
  readonly stored: { readonly before: Attributes; readonly after: Attributes }
  /** What the run changed in targets. */
  readonly written: readonly AttributeWrite[]
  /** What targets give an internal attribute that has no value. */
  readonly defaultValues?: (name: string) => readonly string[]
}

/**
 * Throws WORKFLOW_FAILED if an attribute was to change, but neither its SCIM value nor its stored values did. Without this,
 * the client would take the request for successful. An attribute without a value may have the default of a target, a value
 * that was removed there may have come back, since systems fill in what they need, and a target may take an empty text for
 * none.
 */
export function requireEffect(stored: StoredSchema, effect: Effect): void {
  const { before, wanted, after } = effect
  const { schema, workflow } = stored
  for (const path of changedPaths(schema, before, wanted)) {
    if (!stored.isShown(path) || stored.whyNot(path) !== undefined) continue
    const was = readPath(before, path)
    const list = stored.listAt(path)
    if (list !== undefined) {
      const [old, requested, found] = [before, wanted, after].map((resource) => elementsOf(resource, path))
      if (list.missesPrimary(old ?? [], requested ?? [], found ?? [])) throw noPrimary(internalName(path))
    }
    const sent = readPath(wanted, path)
    const asked = sent === '' ? undefined : sent
    if (isSame(stored, path, was, asked) || !isSame(stored, path, was, readPath(after, path))) continue
    const isDone = (name: string): boolean => {
      const values = effect.stored.after.values(name)
      if (!sameValue(effect.stored.before.values(name), values)) return true
      const isRemoved = asked === undefined && values.length === 1 && values[0] === readPath(after, path)
      return isRemoved && effect.defaultValues?.(name).includes(values[0] ?? '') === true
    }
    const names = stored.namesOf(path)
    if (names.some(isDone)) continue
    if (onlyRemoves(stored, path, was, asked) && names.some((one) => stored.wasWritten(one, effect.written))) continue
    const name = internalName(path)
    throw new GatewayError('WORKFLOW_FAILED', `workflow "${workflow}" ended without changing "${name}"`, {
      publicText: `"${name}" did not change: workflow "${workflow}" ended without writing it. Check its tasks and the mapping of "${name}".`,
    })
  }
}

function onlyRemoves(stored: StoredSchema, path: AttributePath, was: Value, asked: Value): boolean {
  if (asked === undefined) return true
  const [old, left] = [was, asked].map((value) => (Array.isArray(value) ? value : undefined))
  return left?.every((one) => old?.some((other) => isSame(stored, path, [other], [one]))) === true
}

function elementsOf(resource: JsonObject, path: AttributePath): readonly JsonValue[] {
  const value = readPath(resource, path)
  return Array.isArray(value) ? value : []
}

const noPrimary = (name: string): GatewayError =>
  new GatewayError('WORKFLOW_FAILED', `the target does not keep the order of "${name}"`, {
    publicText: `"${name}": another value stayed the primary one, because the target does not keep the order of values. Remove that value first.`,
  })

/** Throws if the mapping converts the new values to the same internal values as the old ones, so nothing would change. */
export function requireMappedChange(
  stored: StoredSchema,
  before: JsonObject,
  wanted: JsonObject,
  kind: ChangeKind,
): void {
  for (const path of changedPaths(stored.schema, before, wanted)) {
    const leaf = path.sub ?? path.attribute
    // A PUT repeats lists as the client has them, and a mapping may store only a part of them.
    const isName = stored.type !== undefined && isCore(path, stored.type.nameAttribute)
    if (isName || leaf.returned === 'never' || (kind === 'put' && leaf.multiValued)) continue
    if (!stored.isShown(path) || isSame(stored, path, readPath(before, path), readPath(wanted, path))) continue
    const name = internalName(path)
    const text = `"${name}" cannot be changed to this value: the mapping stores it like the present one. Send another value, or change the mapping.`
    throw scimError(kind === 'patch' ? 'invalidPath' : 'invalidValue', text)
  }
}

/** The attributes that differ; of a complex attribute without `value`, its parts that differ. */
function changedPaths(schema: ResourceSchema, before: JsonObject, after: JsonObject): AttributePath[] {
  return Array.from(schema.attributes()).flatMap((ref: AttributeRef): AttributePath[] => {
    const { attribute } = ref
    const [was, is] = [readAttribute(before, ref), readAttribute(after, ref)]
    if (attribute.mutability === 'readOnly' || sameValue(was, is)) return []
    if (attribute.type !== 'complex' || attribute.multiValued || defaultSubAttribute(attribute)) return [ref]
    return attribute.subAttributes
      .map((sub) => ({ ...ref, sub }))
      .filter((path) => !sameValue(readPath(before, path), readPath(after, path)))
  })
}

function putAt(resource: ScimResource, path: AttributePath, value: JsonValue | undefined): void {
  const { sub } = path
  const whole = readAttribute(resource, path)
  const { [sub?.name ?? '']: _, ...others } = isJsonObject(whole) ? whole : {}
  const part = sub === undefined || value === undefined ? others : { ...others, [sub.name]: value }
  writeAttribute(resource, path, sub === undefined ? value : part)
}

type Value = JsonValue | undefined

/** Equal to a client: letter case, order and the parts besides `value` do not count, nor what a plain list does not store. */
function isSame(stored: StoredSchema, path: AttributePath, a: Value, b: Value): boolean {
  const list = path.sub === undefined ? stored.listAt(path) : undefined
  const of = (value: Value): JsonValue =>
    list === undefined ? essence(path.sub ?? path.attribute, value) : list.contents(Array.isArray(value) ? value : [])
  return sameValue(of(a), of(b))
}

function essence(leaf: SchemaAttribute, value: Value): JsonValue {
  if (value === undefined || value === null) return null
  const list = Array.isArray(value) ? value : [value as JsonValue]
  const sub = leaf.type === 'complex' ? defaultSubAttribute(leaf)?.name : undefined
  const plain = list.map((one: JsonValue) => (sub !== undefined && isJsonObject(one) ? (one[sub] ?? null) : one))
  return plain.map((one) => JSON.stringify(one).toLowerCase()).sort()
}

/** Names that some clients always send and that carry nothing. */
const habits = [/^http:\/\/schemas\.microsoft\.com\//i]

const commonStart = /^urn:ietf:params:scim:schemas:(?:extension:)?/i

/** Whether a URN is a misspelling of a known schema, rather than that of an unknown one. */
function isMisspelled(urn: string, { core, extensions }: ResourceSchema): boolean {
  const ids = [core, ...extensions].map(({ id }) => id.replace(commonStart, ''))
  return nearestName(urn.replace(commonStart, ''), ids) !== undefined
}

/**
 * Refuses names that are not in any schema, and suggests a similar one. In a create they are dropped, like attributes that
 * are not mapped, except for a misspelled URN, which would drop a whole extension, and for a dry run, which would be made.
 */
export const refuseUnknown =
  (schema: ResourceSchema, kind: ChangeKind, ignored: IgnoredAttributes) =>
  (name: string): void => {
    refuseDryRunName(name)
    const isUrn = /^(?:urn|https?):/i.test(name)
    const isDropped = kind === 'create' && (!isUrn || !isMisspelled(name, schema))
    if (isDropped || ignored.hasName(name) || habits.some((habit) => habit.test(name))) return
    const refs = Array.from(schema.attributes())
    const known = isUrn
      ? [schema.core, ...schema.extensions].flatMap(({ id, attributes }) => [
          id,
          ...attributes.map((attribute) => `${id}:${attribute.name}`),
        ])
      : refs.flatMap(({ attribute }) => [
          attribute.name,
          ...attribute.subAttributes.map((sub) => `${attribute.name}.${sub.name}`),
        ])
    const what = isUrn ? 'schema or attribute' : 'attribute'
    const text = `There is no ${what} ${quoted(name)}${suggestion(name, known)}. Correct the name, or list it in ignoreUnmapped.`
    throw scimError(kind === 'patch' ? 'invalidPath' : isUrn ? 'invalidSyntax' : 'invalidValue', text)
  }

export const servedFlow = (config: ServedConfig): AttributeFlow => ({
  ...gatewayFlow(config),
  others: config.types.map(gatewayFlow),
})

function gatewayFlow(config: GatewayConfig): AttributeFlow {
  const { users, workflows, lookup } = config
  const given = [
    users.loginAttribute,
    ...(users.idAttribute === undefined ? [] : [users.idAttribute]),
    ...(users.deletedAttribute === undefined ? [] : [users.deletedAttribute]),
  ]
  const builtIn = (attribute: string) => ({ attribute, path: users.mappingPath })
  return {
    produces: [...config.toInternal.produces, ...users.mapping.produces.map(builtIn)],
    workflows: [workflows.user, workflows.deleteUser, workflows.members].filter((name) => name !== undefined),
    reads: [...config.toScim.reads, ...users.mapping.produces.map(builtIn)],
    target: lookup.kind === 'target' ? lookup.name : undefined,
    // That of another type is checked with the type.
    ...(lookup.kind === 'target' && !users.type.isCustom ? { targetAt: lookup.path } : {}),
    users:
      lookup.kind === 'target'
        ? { kind: 'target', name: lookup.name }
        : { kind: 'directory', base: lookup.base, login: users.loginAttribute },
    mapsUsers: config.toScim.produces.length > 0,
    given,
    builtInAt: users.mappingPath,
    check: (writesOf, storesOf) => {
      const problem = deactivationProblem(config, writesOf)
      return [...(problem === undefined ? [] : [problem]), ...listProblems(config, writesOf, storesOf)]
    },
  }
}

/** Pairs of `list.<attribute>` whose attribute no target of the workflow has, as far as the configuration says it. */
function listProblems(
  { users, workflows }: GatewayConfig,
  writesOf: (workflow: string) => WorkflowWrites,
  storesOf: (target: string) => ReadonlySet<string> | undefined,
): FlowProblem[] {
  const writes = writesOf(workflows.user)
  const writesTo = (name: string) => {
    const to = writes.ofUser(name)
    return to === 'unknown' ? [] : to
  }
  const canStore = (name: string): boolean =>
    // That no workflow writes it is another problem.
    writesTo(name).length === 0 ||
    writesTo(name).some(({ target, attribute }) => storesOf(target)?.has(attribute.toLowerCase()) !== false)
  return users.lists.flatMap(({ list, path }) =>
    list.unusable(canStore).map(({ type = '', name }) => {
      const targets = new Set(list.names.flatMap(writesTo).map(({ target }) => target))
      const known = [...targets].flatMap((target) => [...(storesOf(target) ?? [])])
      const where = [...targets].map((target) => `"${target}"`).join(' and ')
      const attribute = list.names.includes(name) ? name : `${name}.*`
      const message = `"${type}=${name}": target ${where} does not store "${attribute}"${suggestion(name, known)}, so it can't store this type; add the attribute to the target, or remove the pair`
      return { path, message, isError: true }
    }),
  )
}

/** A warning of `check`: identity providers deprovision users by deactivating them. */
function deactivationProblem(
  config: GatewayConfig,
  writesOf: (workflow: string) => WorkflowWrites,
): FlowProblem | undefined {
  const { users, toInternal, workflows, ignored } = config
  const path = users.active
  if (path === undefined || workflows.user === '' || toInternal.opaque || ignored.has(path)) return undefined
  const at = users.mapping.isEmpty ? users.linesPath : users.mappingPath
  const names = userSources(config).of(path)
  const consequence = 'clients that deactivate users get an error'
  if (names.length === 0) {
    const remedy = 'add an attribute to scim2tremolo with the source "active", and "active" to tremolo2scim'
    const message = `nothing maps "active", so ${consequence}; ${remedy}, or list "active" in ignoreUnmapped`
    return { path: at, message }
  }
  const writes = writesOf(workflows.user)
  const isWritten = (to: readonly AttributeWrite[] | 'unknown'): boolean => to === 'unknown' || to.length > 0
  if (names.some((name) => isWritten(writes.ofUser(name)))) return undefined
  const message = `"active" becomes "${names[0]}", which workflow "${workflows.user}" does not write, so ${consequence}; add it to a provision task`
  return { path: at, message }
}
