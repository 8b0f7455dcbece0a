import { inParallel } from '#kernel/in-parallel.ts'
import type { Path } from '#kernel/issues.ts'
import { type AttributePath, internalName, isCore, pathKey, ResourceSchema } from '#protocols/scim/resource-schema.ts'
import type { Schema, SchemaAttribute } from '#protocols/scim/schema.ts'
import type { TargetSource } from '#sdk/target/target.ts'
import { hasPasswords, type StorableAttributes } from '#sdk/target/target.ts'
import type { AttributeFlow, AttributeWrite, WorkflowWrites } from '#sdk/workflow/flow.ts'
import { unknownWrites } from '#sdk/workflow/workflow-writes.ts'
import type { GatewayConfig } from './gateway-config.ts'
import type { Lookups } from './lookups.ts'
import type { SchemaMapping } from './schema-mapping.ts'

/**
 * What this gateway stores of one resource type. An attribute is stored if the mapping produces an internal attribute from
 * it, the workflow writes that, and a target of the workflow can store it.
 */
export interface StoredSchema {
  /** Exactly the attributes that are stored or shown, for `/Schemas`. */
  readonly announced: ResourceSchema
  /** Why the attribute cannot be stored, and what to do; undefined if it can. */
  whyNot(path: AttributePath): string | undefined
  /** The internal attributes that the mapping produces from it. */
  namesOf(path: AttributePath): readonly string[]
  /** Whether a client can read the attribute. */
  isShown(path: AttributePath): boolean
  /** Internal attributes of the built-in mapping that no target can store. */
  readonly unstorable: readonly string[]
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
    for (const made of toInternal.produces) if (made.path === read.path) sources.add(path, made.attribute)
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
    const name = internalName(path)
    if (mapping.produces.includes(name)) sources.add(path, name)
  }
  return sources
}

type Storable = ReadonlyMap<string, StorableAttributes>

/** What the schemas of users and of groups have in common. */
interface ResourceStorage {
  readonly kind: keyof StorableAttributes
  readonly mapping: SchemaMapping
  readonly sources: Sources
  /** The keys of the paths that are shown without the built-in mapping. */
  readonly named: ReadonlySet<string>
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
  readonly #lookups: Pick<Lookups, 'renamesUsers' | 'groupIdIsName'>
  readonly #targets: TargetSource
  readonly #storages: { readonly users: ResourceStorage; readonly groups: ResourceStorage }
  readonly #targetNames: readonly string[]
  #known: { readonly answers: readonly (StorableAttributes | undefined)[]; readonly schemas: Schemas } | undefined

  constructor(
    config: GatewayConfig,
    lookups: Pick<Lookups, 'renamesUsers' | 'groupIdIsName'>,
    host: { readonly targets: TargetSource; workflowWrites(workflow: string): WorkflowWrites },
  ) {
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
        mapping: users.mapping,
        sources: userSources(config),
        named: new Set(Array.from(config.scimPaths.values(), pathKey)),
        own: ['userName'],
        workflow: workflows.user,
        writesOf: (name) => userWrites.ofUser(name),
      },
      groups: {
        kind: 'groups',
        mapping: groups.mapping,
        sources: groupSources(groups),
        named: new Set(groups.filterNames.keys()),
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

  /** Throws TARGET_UNREACHABLE while a target cannot report what it stores. */
  async users(): Promise<StoredSchema> {
    return (await this.#schemas()).users
  }

  async groups(): Promise<StoredSchema> {
    return (await this.#schemas()).groups
  }

  async #schemas(): Promise<Schemas> {
    const names = this.#targetNames
    const answers = await inParallel(names, 8, async (name) => this.#targets.get(name).storable?.())
    const known = this.#known
    if (known?.answers.every((answer, i) => answer === answers[i])) return known.schemas
    const storable = new Map(names.flatMap((name, i) => (answers[i] === undefined ? [] : [[name, answers[i]]])))
    const schemas = { users: this.#userSchema(storable), groups: this.#groupSchema(storable) }
    this.#known = { answers, schemas }
    return schemas
  }

  #userSchema(storable: Storable): StoredSchema {
    const { users, toInternal } = this.#config
    const storage = this.#storages.users
    const { sources, named, workflow } = storage
    const stored = storedAttributes(storage, storable, this.#config.lookup)
    const announced = announcedSchema(users.schema, {
      whole: (path) => stored.isOwn(path) || (isCore(path, 'groups') && !users.mapping.isEmpty),
      reads: stored.reads,
      writes: (path) => {
        if (isCore(path, 'password')) return this.setsPasswords
        return sources.at(path).length > 0 ? stored.writes(path) : toInternal.opaque && named.has(pathKey(path))
      },
    })
    return {
      ...stored,
      announced: this.#lookups.renamesUsers ? announced : withCore(announced, 'userName', { mutability: 'immutable' }),
      whyNot: (path) => {
        if (isCore(path, 'password')) return this.setsPasswords ? undefined : noPassword(workflow)
        return toInternal.opaque ? undefined : stored.whyNot(path)
      },
    }
  }

  #groupSchema(storable: Storable): StoredSchema {
    const { groups, workflows, lookup } = this.#config
    const stored = storedAttributes(this.#storages.groups, storable, lookup)
    const { isOwn: whole, reads, writes } = stored
    const uniqueness = groups.sharesNames ? 'none' : 'server'
    const fixed = this.#lookups.groupIdIsName ? ({ mutability: 'immutable' } as const) : {}
    const listed = withCore(announcedSchema(groups.schema, { whole, reads, writes }), 'displayName', {
      uniqueness,
      ...fixed,
    })
    return { ...stored, announced: limitedGroups(listed, workflows) }
  }
}

interface Schemas {
  readonly users: StoredSchema
  readonly groups: StoredSchema
}

function storedAttributes(storage: ResourceStorage, storable: Storable, lookup: GatewayConfig['lookup']) {
  const { kind, mapping, sources, named, own, workflow, writesOf } = storage
  const builtIn = new Set(mapping.shown.map(pathKey))
  const canStore = (target: string, attribute: string): boolean => {
    const known = storable.get(target)?.[kind]
    return known === undefined || known === 'any' || known.has(attribute.toLowerCase())
  }
  const isStored = ({ target, attribute }: AttributeWrite): boolean => canStore(target, attribute)
  const isOwn = (path: AttributePath): boolean => own.some((name) => isCore(path, name))
  const reads = (path: AttributePath): boolean =>
    named.has(pathKey(path)) ||
    (builtIn.has(pathKey(path)) && (lookup.kind !== 'target' || canStore(lookup.name, internalName(path))))
  const problem = (path: AttributePath, names: readonly string[]): string | undefined => {
    const shown = internalName(path)
    const ignore = `or list "${shown}" in ignoreUnmapped`
    if (names.length === 0) {
      const remedy =
        kind === 'users'
          ? `Add a line of scim2tremolo that reads "${shown}", ${ignore}.`
          : `Give it a name by groupFilterScim2Ldap, ${ignore}.`
      return `"${shown}" is not mapped, so it cannot be stored. ${remedy}`
    }
    const writes = names.map(writesOf)
    if (writes.some((to) => to === 'unknown' || to.some(isStored))) return undefined
    const [first = shown] = names
    return writes.some((to) => to.length > 0)
      ? `"${shown}" cannot be stored: the target has no place for "${first}". Give it one, ${ignore}.`
      : `"${shown}" cannot be stored: workflow "${workflow}" does not write "${first}". Add it to a provision task, ${ignore}.`
  }
  return {
    isOwn,
    reads,
    writes: (path: AttributePath): boolean =>
      sources.at(path).length > 0 && problem(path, sources.at(path)) === undefined,
    whyNot: (path: AttributePath): string | undefined =>
      isOwn(path) || path.attribute.mutability === 'readOnly' ? undefined : problem(path, sources.of(path)),
    namesOf: (path: AttributePath): readonly string[] => sources.of(path),
    isShown: (path: AttributePath): boolean => {
      const { sub, ...whole } = path
      const parts = sub === undefined ? whole.attribute.subAttributes.map((one) => ({ ...whole, sub: one })) : [path]
      return isOwn(path) || [whole, ...parts].some(reads)
    },
    unstorable: mapping.produces.filter((name) => {
      const writes = writesOf(name)
      return writes !== 'unknown' && writes.length > 0 && !writes.some(isStored)
    }),
  }
}

const noPassword = (workflow: string): string =>
  `"password" cannot be stored: workflow "${workflow}" sets none. Add setPassword to a provision task, or list "password" in ignoreUnmapped.`

/** A warning of `check`: identity providers deprovision users by deactivating them. */
function deactivationProblem(
  config: GatewayConfig,
  writesOf: (workflow: string) => WorkflowWrites,
): { readonly path: Path; readonly message: string } | undefined {
  const { users, toInternal, workflows, ignored } = config
  const path = users.schema.resolveAttribute('active')
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

/** Attributes can be changed only if there is a workflow for it. */
function limitedGroups(listed: ResourceSchema, workflows: GatewayConfig['workflows']): ResourceSchema {
  const given = workflows.createGroup === undefined ? 'readOnly' : 'immutable'
  const own = workflows.updateGroup === undefined ? given : undefined
  const ofMembers = workflows.members === undefined ? 'readOnly' : undefined
  const mutable = (attribute: SchemaAttribute, limit: 'readOnly' | 'immutable' | undefined): SchemaAttribute =>
    limit === undefined || attribute.mutability === 'readOnly' ? attribute : { ...attribute, mutability: limit }
  const core = listed.core.attributes.map((attribute) =>
    attribute.name === 'members'
      ? mutable(memberAttribute(attribute, workflows.nestGroup !== undefined), ofMembers)
      : mutable(attribute, own),
  )
  const extensions = listed.extensions.map((schema) => ({
    ...schema,
    attributes: schema.attributes.map((attribute) => mutable(attribute, own)),
  }))
  return new ResourceSchema({ ...listed.core, attributes: core }, extensions)
}

function withCore({ core, extensions }: ResourceSchema, name: string, more: Partial<SchemaAttribute>): ResourceSchema {
  const attributes = core.attributes.map((attribute) =>
    attribute.name === name ? { ...attribute, ...more } : attribute,
  )
  return new ResourceSchema({ ...core, attributes }, extensions)
}

/** The display name of a member is that of the user or group, so clients cannot set it. */
const memberAttribute = (members: SchemaAttribute, nests: boolean): SchemaAttribute => ({
  ...members,
  subAttributes: members.subAttributes.map((part) => {
    if (part.name === 'display') return { ...part, mutability: 'readOnly' }
    const only = (list: readonly string[]): readonly string[] => (nests ? list : list.filter((name) => name === 'User'))
    return {
      ...part,
      ...(part.referenceTypes === undefined ? {} : { referenceTypes: only(part.referenceTypes) }),
      ...(part.canonicalValues === undefined ? {} : { canonicalValues: only(part.canonicalValues) }),
    }
  }),
})

interface Support {
  /** The attribute is listed as in the full schema. */
  readonly whole: (path: AttributePath) => boolean
  readonly reads: (path: AttributePath) => boolean
  readonly writes: (path: AttributePath) => boolean
}

/** The schema without attributes that are neither read nor written. */
function announcedSchema(full: ResourceSchema, support: Support): ResourceSchema {
  const cutSchema = (schema: Schema, extension?: string): Schema => ({
    ...schema,
    attributes: schema.attributes.flatMap((attribute) =>
      view(extension === undefined ? { attribute } : { attribute, extension }, support),
    ),
  })
  return new ResourceSchema(
    cutSchema(full.core),
    full.extensions.map((schema) => cutSchema(schema, schema.id)).filter(({ attributes }) => attributes.length > 0),
  )
}

function view(path: AttributePath, support: Support): SchemaAttribute[] {
  const { attribute } = path
  if (support.whole(path)) return [attribute]
  const reads = support.reads(path)
  const writes = support.writes(path)
  const parts = attribute.subAttributes.flatMap((sub) => {
    const part = { ...path, sub }
    return limited(sub, reads || support.reads(part), writes || support.writes(part))
  })
  if (parts.length === 0) return limited(attribute, reads, writes)
  const readsAny = reads || parts.some(({ returned }) => returned !== 'never')
  const writesAny = writes || parts.some(({ mutability }) => mutability !== 'readOnly')
  return limited(attribute, readsAny, writesAny).map((one) => ({ ...one, subAttributes: parts }))
}

function limited(attribute: SchemaAttribute, reads: boolean, writes: boolean): SchemaAttribute[] {
  if (!reads && !writes) return []
  if (attribute.mutability === 'readOnly' || (reads && writes)) return [attribute]
  return [
    reads ? { ...attribute, mutability: 'readOnly' } : { ...attribute, mutability: 'writeOnly', returned: 'never' },
  ]
}

export function gatewayFlow(config: GatewayConfig): AttributeFlow {
  const { users, workflows, lookup } = config
  const given = [
    users.loginAttribute,
    users.lookupAttribute,
    ...(users.idAttribute === undefined ? [] : [users.idAttribute]),
    ...(users.deletedAttribute === undefined ? [] : [users.deletedAttribute]),
  ]
  const builtIn = (attribute: string) => ({ attribute, path: users.mappingPath })
  return {
    produces: [...config.toInternal.produces, ...users.mapping.produces.map(builtIn)],
    workflows: [workflows.user, workflows.deleteUser, workflows.members].filter((name) => name !== undefined),
    reads: [...config.toScim.reads, ...users.mapping.produces.map(builtIn)],
    target: lookup.kind === 'target' ? lookup.name : undefined,
    ...(lookup.kind === 'target' ? { targetAt: lookup.path } : {}),
    given,
    builtInAt: users.mappingPath,
    check: (writesOf) => {
      const problem = deactivationProblem(config, writesOf)
      return problem === undefined ? [] : [problem]
    },
  }
}
