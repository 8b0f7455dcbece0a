import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import { extendResourceSchema, readSchema } from '#protocols/scim/schema/read-schema.ts'
import { ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import type { Schema, SchemaAttribute } from '#protocols/scim/schema/schema.ts'
import { enterpriseUserSchema, groupSchema, userSchema } from '#protocols/scim/schema/standard-schemas.ts'
import { groupFacts, type ScimProfile } from './profiles.ts'
import type { ScimConnection } from './scim-connection.ts'

const keptMillis = 10 * 60_000
const retryMillis = 30_000
const paths = ['/ServiceProviderConfig', '/ResourceTypes', '/Schemas'] as const

/** The features that the service describes (RFC 7644 4), read from time to time, and what its profile knows better. */
export class ServiceDiscovery {
  readonly #connection: ScimConnection
  readonly #profile: ScimProfile
  readonly #clock: Clock
  readonly #log: Logger
  #known: ServiceFeatures | undefined
  #until = 0
  #asked: Promise<ServiceFeatures> | undefined

  constructor(connection: ScimConnection, profile: ScimProfile, clock: Clock, log: Logger) {
    this.#connection = connection
    this.#profile = profile
    if (profile.isUndescribed === true) {
      this.#known = readFeatures(profile, [])
      this.#until = Number.POSITIVE_INFINITY
    }
    this.#clock = clock
    this.#log = log
  }

  /** The features that were read last; undefined before the first read. */
  get known(): ServiceFeatures | undefined {
    return this.#known
  }

  /** Throws TARGET_UNREACHABLE if the service does not answer and was never read. */
  async features(): Promise<ServiceFeatures> {
    const known = this.#known
    if (known !== undefined && this.#clock().getTime() < this.#until) return known
    this.#asked ??= this.#ask().finally(() => {
      this.#asked = undefined
    })
    if (known === undefined) return this.#asked
    // The known features serve until the new ones are read.
    this.#asked.catch(() => {})
    return known
  }

  async #ask(): Promise<ServiceFeatures> {
    let kept = retryMillis
    try {
      const documents = await Promise.all(paths.map((path) => this.#document(path)))
      const known = documents.map((document) => (document === 'refused' ? undefined : document))
      this.#known = readFeatures(this.#profile, known)
      if (!documents.includes('refused')) kept = keptMillis
      return this.#known
    } finally {
      this.#until = this.#clock().getTime() + kept
    }
  }

  /** Undefined if the service has no such document; `refused` if it may return it after an operator fixed something. */
  async #document(path: string): Promise<JsonObject | 'refused' | undefined> {
    try {
      return (await this.#connection.call({ method: 'GET', path })).body
    } catch (error) {
      if (error instanceof GatewayError && error.code === 'TARGET_UNREACHABLE') throw error
      this.#log.warn('the SCIM service does not describe itself', { path, err: error })
      return error instanceof GatewayError && error.code === 'TARGET_FAILED' ? 'refused' : undefined
    }
  }
}

export interface ServiceFeatures {
  readonly patch: boolean
  /** Undefined without a bulk endpoint. */
  readonly bulk: { readonly maxOperations: number; readonly maxPayload: number } | undefined
  readonly filter: boolean
  readonly sort: boolean
  readonly etag: boolean
  readonly pages: { readonly cursor: boolean; readonly index: boolean }
  readonly users: ResourceSchema
  readonly groups: ResourceSchema
}

const standardUsers = new ResourceSchema(userSchema, [enterpriseUserSchema])
const standardGroups = new ResourceSchema(groupSchema)

/** Reads the documents of RFC 7644 4. Missing or invalid entries get the defaults of RFC 7644. The profile replaces them. */
function readFeatures(profile: ScimProfile, found: readonly (JsonObject | undefined)[]): ServiceFeatures {
  const [config, resourceTypes, schemas] = found
  const documents = resourcesOf(schemas)
  const extensions = (name: string): ReadonlySet<string> => extensionsOf(resourcesOf(resourceTypes), name)
  const bulk = partOf(config, 'bulk')
  const pages = partOf(config, 'pagination')
  return {
    patch: isSupported(config, 'patch', true),
    bulk: isSupported(config, 'bulk', false)
      ? { maxOperations: limitOf(bulk['maxOperations'], 1000), maxPayload: limitOf(bulk['maxPayloadSize'], 1 << 20) }
      : undefined,
    filter: isSupported(config, 'filter', true),
    sort: isSupported(config, 'sort', false),
    etag: isSupported(config, 'etag', false),
    pages: { cursor: pages['cursor'] === true, index: pages['index'] !== false },
    ...profile.features,
    users: limited(declared(standardUsers, documents, extensions('User')), profile.users.attributes),
    groups: limited(declared(standardGroups, documents, extensions('Group')), groupFacts(profile).attributes),
  }
}

const partOf = (config: JsonObject | undefined, name: string): JsonObject => {
  const part = config?.[name]
  return isJsonObject(part) ? part : {}
}

function isSupported(config: JsonObject | undefined, name: string, fallback: boolean): boolean {
  const supported = partOf(config, name)['supported']
  return typeof supported === 'boolean' ? supported : fallback
}

const limitOf = (value: JsonValue | undefined, most: number): number =>
  typeof value === 'number' && value >= 1 ? Math.min(Math.floor(value), most) : most

function resourcesOf(list: JsonObject | undefined): readonly JsonObject[] {
  const resources = list?.['Resources']
  return Array.isArray(resources) ? resources.filter(isJsonObject).slice(0, maxDocuments) : []
}

const maxDocuments = 100

function extensionsOf(types: readonly JsonObject[], name: string): ReadonlySet<string> {
  const type = types.find((candidate) => candidate['name'] === name || candidate['id'] === name)
  const list = type?.['schemaExtensions']
  const uris = Array.isArray(list)
    ? list.flatMap((entry: JsonValue) => (isJsonObject(entry) ? entry['schema'] : []))
    : []
  return new Set(uris.filter((uri) => typeof uri === 'string').map((uri) => uri.toLowerCase()))
}

/** The standard schemas, extended with those of the service. */
function declared(
  standard: ResourceSchema,
  documents: readonly JsonObject[],
  extensions: ReadonlySet<string>,
): ResourceSchema {
  const own = new Set([standard.core, ...standard.extensions].map(({ id }) => id.toLowerCase()))
  const schemas = documents.flatMap((document) => {
    const id = typeof document['id'] === 'string' ? document['id'].toLowerCase() : ''
    return own.has(id) || extensions.has(id) ? readLeniently(document) : []
  })
  return extendResourceSchema(standard, schemas, () => {})
}

/** Only the listed attributes of the core schema, as `name` or `name.sub`. */
function limited(schema: ResourceSchema, names: readonly string[] | undefined): ResourceSchema {
  if (names === undefined) return schema
  const attributes = schema.core.attributes.flatMap((attribute): SchemaAttribute[] => {
    if (names.includes(attribute.name)) return [attribute]
    const subAttributes = attribute.subAttributes.filter(({ name }) => names.includes(`${attribute.name}.${name}`))
    return subAttributes.length === 0 ? [] : [{ ...attribute, subAttributes }]
  })
  return new ResourceSchema({ ...schema.core, attributes })
}

const attributeKeys = [
  ...['name', 'type', 'multiValued', 'description', 'required', 'caseExact', 'mutability', 'returned'],
  ...['uniqueness', 'subAttributes'],
]

/** Services describe themselves with varying accuracy, so attributes that cannot be read are left out. */
function readLeniently({ id, attributes }: JsonObject): Schema[] {
  const read = (Array.isArray(attributes) ? attributes : []).slice(0, maxAttributes).flatMap((raw: JsonValue) => {
    const document = { id, attributes: [knownPart(raw)] }
    return readSchema(document, () => {})?.attributes ?? []
  })
  const [first] = read
  if (first === undefined || typeof id !== 'string') return []
  return [
    {
      id,
      name: id,
      description: '',
      attributes: [...new Map(read.map((one) => [one.name.toLowerCase(), one])).values()],
    },
  ]
}

const maxAttributes = 200

function knownPart(raw: JsonValue): JsonValue {
  if (!isJsonObject(raw)) return raw
  const kept: Record<string, JsonValue> = {}
  for (const key of attributeKeys) {
    const value = raw[key]
    if (value === undefined || value === null) continue
    if (key !== 'subAttributes') kept[key] = value
    else if (Array.isArray(value) && value.length > 0) kept[key] = value.map(knownPart)
  }
  return kept
}
