import { inParallel } from '#kernel/in-parallel.ts'
import type { Path } from '#kernel/issues.ts'
import { type AttributePath, internalName, isCore, pathKey, ResourceSchema } from '#protocols/scim/resource-schema.ts'
import type { Schema, SchemaAttribute } from '#protocols/scim/schema.ts'
import type { AttributeFlow } from '#sdk/flow.ts'
import type { TargetSource } from '#sdk/host.ts'
import { hasPasswords, type StorableAttributes } from '#sdk/target.ts'
import { type AttributeWrite, unknownWrites, type WorkflowWrites } from '#sdk/workflow-writes.ts'
import type { GatewayConfig } from './gateway-config.ts'
import type { Lookups } from './lookups.ts'

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

export function userSources({
  users,
  toInternal,
}: Pick<GatewayConfig, 'toInternal'> & { users: Pick<GatewayConfig['users'], 'schema' | 'mapping'> }): Sources {
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

function builtInSources(mapping: GatewayConfig['users']['mapping']): Sources {
  const sources = new Sources()
  for (const path of mapping.taken) {
    const name = internalName(path)
    if (mapping.produces.includes(name)) sources.add(path, name)
  }
  return sources
}

type Storable = ReadonlyMap<string, StorableAttributes>
type Kind = keyof StorableAttributes

/** Asks the targets what they can store, and caches the schemas that follow from it. */
export class GatewayStorage {
  /** The workflow sets passwords, and a target accepts them. */
  readonly setsPasswords: boolean
  readonly #config: GatewayConfig
  readonly #lookups: Pick<Lookups, 'renamesUsers' | 'groupIdIsName'>
  readonly #targets: TargetSource
  readonly #writes: { readonly users: WorkflowWrites; readonly groups: WorkflowWrites }
  readonly #asked: readonly string[]
  #known: { readonly answers: readonly (StorableAttributes | undefined)[]; readonly schemas: Schemas } | undefined

  constructor(
    config: GatewayConfig,
    lookups: Pick<Lookups, 'renamesUsers' | 'groupIdIsName'>,
    host: { readonly targets: TargetSource; workflowWrites(workflow: string): WorkflowWrites },
  ) {
    const { workflows, lookup } = config
    this.#config = config
    this.#lookups = lookups
    this.#targets = host.targets
    const ofGroups = workflows.updateGroup ?? workflows.createGroup
    this.#writes = {
      users: host.workflowWrites(workflows.user),
      groups: ofGroups === undefined ? unknownWrites : host.workflowWrites(ofGroups),
    }
    const { passwords } = this.#writes.users
    this.setsPasswords = passwords === 'unknown' || passwords.some((name) => hasPasswords(host.targets.get(name)))
    const written = [
      ...config.users.produces.map((name) => this.#writes.users.ofUser(name)),
      ...config.groups.mapping.produces.map((name) => this.#writes.groups.ofGroup(name)),
      ...[...config.groups.filterNames.values()].map((name) => this.#writes.groups.ofGroup(name)),
    ]
    const names = written.flatMap((writes) => (writes === 'unknown' ? [] : writes.map(({ target }) => target)))
    this.#asked = [...new Set([...names, ...(lookup.kind === 'target' ? [lookup.name] : [])])]
  }

  /** Throws TARGET_UNREACHABLE while a target cannot report what it stores. */
  async users(): Promise<StoredSchema> {
    return (await this.#schemas()).users
  }

  async groups(): Promise<StoredSchema> {
    return (await this.#schemas()).groups
  }

  async #schemas(): Promise<Schemas> {
    const answers = await inParallel(this.#asked, 8, async (name) => this.#targets.get(name).storable?.())
    const known = this.#known
    if (known?.answers.every((answer, i) => answer === answers[i])) return known.schemas
    const storable = new Map(this.#asked.flatMap((name, i) => (answers[i] === undefined ? [] : [[name, answers[i]]])))
    const schemas = { users: this.#userSchema(storable), groups: this.#groupSchema(storable) }
    this.#known = { answers, schemas }
    return schemas
  }

  #userSchema(storable: Storable): StoredSchema {
    const { users, toInternal, scimPaths, workflows } = this.#config
    const sources = userSources(this.#config)
    const lines = new Set(Array.from(scimPaths.values(), pathKey))
    const builtIn = new Set(users.mapping.shown.map(pathKey))
    const holds = (path: AttributePath): boolean => this.#holds(storable, 'users', internalName(path))
    const names = new Names((name) => this.#writes.users.ofUser(name), storable, 'users', workflows.user)
    const isOwn = (path: AttributePath): boolean => isCore(path, 'userName')
    const whyNot = (path: AttributePath): string | undefined => {
      if (isOwn(path) || path.attribute.mutability === 'readOnly') return undefined
      if (isCore(path, 'password')) return this.setsPasswords ? undefined : noPassword(workflows.user)
      return toInternal.opaque ? undefined : names.whyNot(path, sources.of(path))
    }
    const reads = (path: AttributePath): boolean =>
      lines.has(pathKey(path)) || (builtIn.has(pathKey(path)) && holds(path))
    const announced = cut(users.schema, {
      whole: (path) => isOwn(path) || (isCore(path, 'groups') && !users.mapping.isEmpty),
      reads,
      writes: (path) => {
        if (isCore(path, 'password')) return this.setsPasswords
        if (sources.at(path).length > 0) return names.whyNot(path, sources.at(path)) === undefined
        return toInternal.opaque && lines.has(pathKey(path))
      },
    })
    return {
      announced: this.#lookups.renamesUsers ? announced : withCore(announced, 'userName', { mutability: 'immutable' }),
      whyNot,
      namesOf: (path) => sources.of(path),
      isShown: (path) => isOwn(path) || isShownIn(reads, path),
      unstorable: users.mapping.produces.filter((name) => names.isUnstorable(name)),
    }
  }

  #groupSchema(storable: Storable): StoredSchema {
    const { groups, workflows } = this.#config
    const sources = groupSources(groups)
    const workflow = workflows.updateGroup ?? workflows.createGroup ?? ''
    const names = new Names((name) => this.#writes.groups.ofGroup(name), storable, 'groups', workflow)
    const isOwn = (path: AttributePath): boolean => isCore(path, 'displayName') || isCore(path, 'members')
    const kept = new Set([...groups.mapping.shown.map(pathKey), ...groups.filterNames.keys()])
    const builtIn = new Set(groups.mapping.shown.map(pathKey))
    const reads = (path: AttributePath): boolean =>
      kept.has(pathKey(path)) && (!builtIn.has(pathKey(path)) || this.#holds(storable, 'groups', internalName(path)))
    const listed = cut(groups.schema, {
      whole: isOwn,
      reads,
      writes: (path) => sources.at(path).length > 0 && names.whyNot(path, sources.at(path)) === undefined,
    })
    const uniqueness = groups.sharesNames ? 'none' : 'server'
    const fixed = this.#lookups.groupIdIsName ? ({ mutability: 'immutable' } as const) : {}
    return {
      announced: limitedGroups(withCore(listed, 'displayName', { uniqueness, ...fixed }), workflows),
      whyNot: (path) =>
        isOwn(path) || path.attribute.mutability === 'readOnly' ? undefined : names.whyNot(path, sources.of(path)),
      namesOf: (path) => sources.of(path),
      isShown: (path) => isOwn(path) || isShownIn(reads, path),
      unstorable: groups.mapping.produces.filter((name) => names.isUnstorable(name)),
    }
  }

  /** Whether the target that is read from may have the attribute. */
  #holds(storable: Storable, kind: Kind, name: string): boolean {
    const { lookup } = this.#config
    const held = lookup.kind === 'target' ? storable.get(lookup.name)?.[kind] : undefined
    return held === undefined || held === 'any' || held.has(name.toLowerCase())
  }
}

interface Schemas {
  readonly users: StoredSchema
  readonly groups: StoredSchema
}

/** Whether the workflow writes internal attributes to targets that can store them. */
class Names {
  readonly #writes: (attribute: string) => readonly AttributeWrite[] | 'unknown'
  readonly #storable: Storable
  readonly #kind: Kind
  readonly #workflow: string

  constructor(
    writes: (attribute: string) => readonly AttributeWrite[] | 'unknown',
    storable: Storable,
    kind: Kind,
    workflow: string,
  ) {
    this.#writes = writes
    this.#storable = storable
    this.#kind = kind
    this.#workflow = workflow
  }

  isUnstorable(name: string): boolean {
    const writes = this.#writes(name)
    return writes !== 'unknown' && writes.length > 0 && !writes.some((write) => this.#takes(write))
  }

  whyNot(path: AttributePath, names: readonly string[]): string | undefined {
    const shown = internalName(path)
    const ignore = `or list "${shown}" in ignoreUnmapped`
    if (names.length === 0) {
      const remedy =
        this.#kind === 'users'
          ? `Add a line of scim2tremolo that reads "${shown}", ${ignore}.`
          : `Give it a name by groupFilterScim2Ldap, ${ignore}.`
      return `"${shown}" is not mapped, so it cannot be stored. ${remedy}`
    }
    const writes = names.map((name) => [name, this.#writes(name)] as const)
    if (writes.some(([, to]) => to === 'unknown' || to.some((write) => this.#takes(write)))) return undefined
    const [first = shown] = names
    const isWritten = writes.some(([, to]) => to.length > 0)
    return isWritten
      ? `"${shown}" cannot be stored: the target has no place for "${first}". Give it one, ${ignore}.`
      : `"${shown}" cannot be stored: workflow "${this.#workflow}" does not write "${first}". Add it to a provision task, ${ignore}.`
  }

  #takes({ target, attribute }: AttributeWrite): boolean {
    const held = this.#storable.get(target)?.[this.#kind]
    return held === undefined || held === 'any' || held.has(attribute.toLowerCase())
  }
}

const noPassword = (workflow: string): string =>
  `"password" cannot be stored: workflow "${workflow}" sets none. Add setPassword to a provision task, or list "password" in ignoreUnmapped.`

const isShownIn = (reads: (path: AttributePath) => boolean, { sub, ...whole }: AttributePath): boolean =>
  reads(whole) ||
  (sub === undefined
    ? whole.attribute.subAttributes.some((one) => reads({ ...whole, sub: one }))
    : reads({ ...whole, sub }))

/** What `check` has to say about deactivation: providers deprovision by it. */
export function deactivationProblem(
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

function cut(full: ResourceSchema, support: Support): ResourceSchema {
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
