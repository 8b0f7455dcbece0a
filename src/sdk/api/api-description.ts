import * as z from 'zod'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import type { Route } from '#sdk/contract/routes.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { ApiDocuments, ApiFormat, ApiPlace, FilterApi } from '#sdk/filter/filter-api.ts'

/** An answer of an operation. Without `schema` it has no body, or one that is not JSON. */
export interface ApiAnswer {
  readonly description: string
  /** The name of a definition. */
  readonly schema?: string
  /** The body is a list of these. */
  readonly many?: boolean
  /** The media type; that of the API if absent. */
  readonly type?: string
}

/** An operation as a filter describes it. Without `answer` and `answers` it returns 204. */
export interface OperationDescription {
  readonly route: Route
  readonly summary: string
  /** What a reader of the summary may still ask. */
  readonly description?: string
  /** Query parameters by name, with their descriptions. */
  readonly query?: Readonly<Record<string, string>>
  /** Those of them that every call needs. */
  readonly requiredQuery?: readonly string[]
  /** The name of a definition. */
  readonly body?: string
  /** The media type of the body; that of the API if absent. */
  readonly bodyType?: string
  /** The definition of the answer with status 200; `Name[]` for a list. */
  readonly answer?: string
  /** Answers with another status, or without a definition, by status. */
  readonly answers?: Readonly<Record<string, ApiAnswer>>
  /** Failures that deserve a description, by status. */
  readonly failures?: Readonly<Record<string, string>>
}

export interface ApiOperation
  extends Pick<OperationDescription, 'summary' | 'description' | 'query' | 'requiredQuery' | 'body' | 'bodyType'> {
  readonly id: string
  readonly method: string
  /** Empty for the path of the API itself. */
  readonly path: string
  /** By status. */
  readonly answers: Readonly<Record<string, ApiAnswer>>
}

/** The requests and answers of an HTTP API, the single source of its Swagger and OpenAPI documents. */
export interface ApiDescription<I extends string = string> {
  readonly title: string
  readonly version: string
  /** The media type of bodies and answers; JSON if absent. */
  readonly type?: string
  /** The group of an operation, by its path; without groups if absent. */
  readonly tag?: (path: string) => string
  /** Definitions of answers by name. */
  readonly answers: Readonly<Record<string, z.ZodType>>
  /** Definitions of request bodies by name. */
  readonly bodies: Readonly<Record<string, z.ZodType>>
  /** The failure answer of every operation, unless it declares another. */
  readonly failure: ApiAnswer
  /** By id. */
  readonly operations: Readonly<Record<I, OperationDescription>>
}

/** Where an API is whose URL has a mount. */
export type PlaceOf = FilterApi['place']

/** The place of an API whose `prefix` may be the end of the mount or follow it. */
export const placeBelow =
  (prefix: string): PlaceOf =>
  (mount) => ({ base: mount.endsWith(prefix) ? mount.slice(0, -prefix.length) : mount, prefix })

/** The place of an API whose paths are below the mount, and never the mount itself. */
export const placeAtMount: PlaceOf = (mount) => ({ base: mount, prefix: '' })

/** The place of an API that also answers at its mount: the last segment is part of its paths. */
export const placeAtSegment: PlaceOf = (mount) => {
  const slash = Math.max(mount.lastIndexOf('/'), 0)
  return { base: mount.slice(0, slash), prefix: mount.slice(slash) }
}

/** Where the API of a request is. */
export const apiPlace = (place: PlaceOf, { mount, request }: Pick<Exchange, 'mount' | 'request'>): ApiPlace => ({
  origin: request.origin,
  ...place(mount),
})

/** The file names of the documents, below the path of an API. */
export const apiFile = { swagger: 'swagger.json', openapi: 'openapi.json' } as const satisfies Record<ApiFormat, string>

const json = 'application/json'

/** A JWK Set (RFC 7517 5). */
export const keySetSchema = z.object({
  keys: z.array(z.looseObject({ kty: z.string(), kid: z.string().optional(), alg: z.string().optional() })),
})

/** Writes the documents of one API. The schemas are translated once. */
export class DescribedApi<I extends string = string> implements ApiDocuments {
  readonly description: ApiDescription<I>
  readonly operations: readonly ApiOperation[]
  readonly #definitions = new Map<string, JsonObject>()

  constructor(description: ApiDescription<I>) {
    this.description = description
    this.operations = Object.entries<OperationDescription>(description.operations).map(([id, operation]) =>
      readOperation(id, operation, description.failure),
    )
  }

  /** The API with only these operations. */
  only(keep: (operation: ApiOperation) => boolean): DescribedApi {
    const ids = new Set(this.operations.filter(keep).map(({ id }) => id))
    const operations = Object.entries<OperationDescription>(this.description.operations).filter(([id]) => ids.has(id))
    return new DescribedApi<string>({ ...this.description, operations: Object.fromEntries(operations) })
  }

  /** The API as the portal lists it. `users` is what callers see who are not administrators; nothing if absent. */
  served(
    place: PlaceOf,
    {
      formats = ['openapi'],
      users,
      hasOwnCredentials = false,
      sessionOf,
    }: {
      formats?: readonly ApiFormat[]
      users?: DescribedApi
      hasOwnCredentials?: boolean
      sessionOf?: string
    } = {},
  ): FilterApi {
    const { title } = this.description
    return { title, formats, hasOwnCredentials, sessionOf, place, documents: this, userDocuments: users }
  }

  /** The document of that file name; undefined for another name. */
  document(file: string, place: ApiPlace): JsonObject | undefined {
    if (file === apiFile.swagger) return this.swagger(place)
    return file === apiFile.openapi ? this.openApi(place) : undefined
  }

  /** Swagger 2.0. */
  swagger({ base, prefix }: Pick<ApiPlace, 'base' | 'prefix'>): JsonObject {
    const { title, version } = this.description
    const reference = (name: string, many = false): JsonObject => {
      const one = { $ref: `#/definitions/${name}` }
      return many ? { type: 'array', items: one } : one
    }
    return {
      swagger: '2.0',
      info: { title, version },
      basePath: base === '' ? '/' : base,
      schemes: ['https', 'http'],
      consumes: [this.#type],
      produces: [this.#type],
      ...this.#tags(),
      paths: this.#paths(
        prefix,
        ({ id, path, query = {}, requiredQuery = [], body, bodyType, answers, ...operation }) => ({
          operationId: id,
          ...this.#texts(path, operation),
          ...(bodyType === undefined ? {} : { consumes: [bodyType] }),
          ...producesOf(answers, this.#type),
          parameters: [
            ...namesIn(path).map((name) => ({ name, in: 'path', required: true, type: 'string' })),
            ...Object.entries(query).map(([name, description]) => ({
              name,
              description,
              in: 'query',
              required: requiredQuery.includes(name),
              type: 'string',
            })),
            ...(body === undefined ? [] : [{ name: 'body', in: 'body', required: true, schema: reference(body) }]),
          ],
          responses: mapAnswers(answers, ({ description, schema, many }) => ({
            description,
            ...(schema === undefined ? {} : { schema: reference(schema, many) }),
          })),
        }),
      ),
      definitions: this.#schemas('#/definitions/', 'draft-4', plainSchema),
    }
  }

  /** OpenAPI 3.1. */
  openApi({ origin, base, prefix }: ApiPlace): JsonObject {
    const { title, version } = this.description
    const content = (name: string, many = false, type = this.#type): JsonObject => {
      const one = { $ref: `#/components/schemas/${name}` }
      return { [type]: { schema: many ? { type: 'array', items: one } : one } }
    }
    return {
      openapi: '3.1.0',
      info: { title, version },
      servers: [{ url: `${origin}${base}` }],
      ...this.#tags(),
      paths: this.#paths(
        prefix,
        ({ id, path, query = {}, requiredQuery = [], body, bodyType, answers, ...operation }) => ({
          operationId: id,
          ...this.#texts(path, operation),
          parameters: [
            ...namesIn(path).map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } })),
            ...Object.entries(query).map(([name, description]) => ({
              name,
              description,
              in: 'query',
              required: requiredQuery.includes(name),
              schema: { type: 'string' },
            })),
          ],
          ...(body === undefined ? {} : { requestBody: { required: true, content: content(body, false, bodyType) } }),
          responses: mapAnswers(answers, ({ description, schema, many, type }) => ({
            description,
            ...(schema !== undefined
              ? { content: content(schema, many, type) }
              : type === undefined
                ? {}
                : { content: { [type]: {} } }),
          })),
        }),
      ),
      components: { schemas: this.#schemas('#/components/schemas/', 'draft-2020-12', (schema) => schema) },
    }
  }

  get #type(): string {
    return this.description.type ?? json
  }

  #texts(path: string, { summary, description }: Pick<ApiOperation, 'summary' | 'description'>): JsonObject {
    const { tag } = this.description
    return {
      summary,
      ...(description === undefined ? {} : { description }),
      ...(tag === undefined ? {} : { tags: [tag(path)] }),
    }
  }

  /** The groups, in the order of their first operations. */
  #tags(): JsonObject {
    const { tag } = this.description
    if (tag === undefined) return {}
    return { tags: [...new Set(this.operations.map(({ path }) => tag(path)))].map((name) => ({ name })) }
  }

  #paths(prefix: string, describe: (operation: ApiOperation) => JsonObject): JsonObject {
    const { failure } = this.description
    const paths: Record<string, Record<string, JsonValue>> = {}
    for (const operation of this.operations) {
      const at = `${prefix}${operation.path}` || '/'
      const methods = paths[at] ?? {}
      methods[operation.method] = describe({ ...operation, answers: { ...operation.answers, default: failure } })
      paths[at] = methods
    }
    return paths
  }

  #schemas(place: string, target: 'draft-4' | 'draft-2020-12', adapt: (schema: JsonObject) => JsonObject): JsonObject {
    const known = this.#definitions.get(target)
    if (known !== undefined) return known
    const { answers, bodies } = this.description
    const made = { ...toJson(answers, 'output', place, target), ...toJson(bodies, 'input', place, target) }
    const used = usedDefinitions(made, place, this.#roots())
    const adapted = Object.fromEntries(used.map(([name, schema]) => [name, adapt(schema)]))
    this.#definitions.set(target, adapted)
    return adapted
  }

  /** The definitions that operations name. */
  #roots(): string[] {
    return this.operations.flatMap(({ body, answers }) =>
      [body, this.description.failure.schema, ...Object.values(answers).map(({ schema }) => schema)].filter(
        (name) => name !== undefined,
      ),
    )
  }
}

/** The definitions that the roots are or refer to, so that a document has no others. */
function usedDefinitions(
  made: Readonly<Record<string, JsonObject>>,
  place: string,
  roots: readonly string[],
): [string, JsonObject][] {
  const used = new Set<string>()
  const visit = (value: JsonValue | undefined): void => {
    if (Array.isArray(value)) for (const one of value) visit(one)
    if (!isObject(value)) return
    const { $ref } = value
    if (typeof $ref === 'string' && $ref.startsWith(place)) use($ref.slice(place.length))
    for (const one of Object.values(value)) visit(one)
  }
  const use = (name: string): void => {
    if (used.has(name)) return
    used.add(name)
    visit(made[name])
  }
  for (const root of roots) use(root)
  return Object.entries(made).filter(([name]) => used.has(name))
}

function readOperation(id: string, operation: OperationDescription, failure: ApiAnswer): ApiOperation {
  const { route, answer, answers, failures = {}, ...rest } = operation
  const [method = '', path = ''] = route.split(' ')
  const fallback = answer === undefined && answers === undefined ? { '204': { description: 'Done' } } : {}
  return {
    ...rest,
    id,
    path,
    method: method.toLowerCase(),
    answers: {
      ...fallback,
      ...(answer === undefined ? {} : { '200': namedAnswer(answer) }),
      ...answers,
      ...mapAnswers(failures, (description) => ({ ...failure, description })),
    },
  }
}

function namedAnswer(name: string): ApiAnswer {
  const many = name.endsWith('[]')
  return { description: 'Success', schema: many ? name.slice(0, -2) : name, many }
}

/** Schemas that are definitions themselves become references inside others. */
function toJson(
  definitions: Readonly<Record<string, z.ZodType>>,
  io: 'input' | 'output',
  place: string,
  target: 'draft-4' | 'draft-2020-12',
): Record<string, JsonObject> {
  const registry = z.registry<{ id: string }>()
  for (const [id, schema] of Object.entries(definitions)) registry.add(schema, { id })
  const made = z.toJSONSchema(registry, { io, target, uri: (id) => `${place}${id}`, override: dropBounds })
  return Object.fromEntries(
    Object.entries(made.schemas).map(([name, { $schema: _, $id: __, id: ___, ...schema }]) => [
      name,
      schema as JsonObject,
    ]),
  )
}

/** Removes the bounds of machine numbers and schemas of property names from the description. */
function dropBounds({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  if (jsonSchema.type === 'integer') {
    if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
    if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
  }
  delete jsonSchema.propertyNames
}

/**
 * Swagger 2.0 has no alternatives: null becomes `x-nullable`, and other alternatives are left open. Of several examples it
 * has the first.
 */
function plainSchema(schema: JsonObject): JsonObject {
  const { anyOf, oneOf, ...known } = schema
  const { examples, ...others } = known
  const rest = Array.isArray(examples) ? { ...others, example: examples[0] ?? null } : known
  const alternatives = [anyOf, oneOf].flat().filter(isObject)
  const plain: JsonObject = Object.fromEntries(
    Object.entries(rest).map(([name, value]) => [name, plainValue(value)] as const),
  )
  if (alternatives.length === 0) return plain
  const present = alternatives.filter(({ type }) => type !== 'null')
  const [only] = present
  if (present.length === 1 && only !== undefined) return { ...plainSchema(only), ...plain, 'x-nullable': true }
  return present.every(({ type, $ref }) => type === 'object' || $ref !== undefined)
    ? { ...plain, type: 'object' }
    : plain
}

function plainValue(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(plainValue)
  return isObject(value) ? plainSchema(value) : value
}

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const namesIn = (path: string): string[] => Array.from(path.matchAll(/\{(\w+)\}/g), ([, name = '']) => name)

const mapAnswers = <A, B>(answers: Readonly<Record<string, A>>, describe: (answer: A) => B): Record<string, B> =>
  Object.fromEntries(Object.entries(answers).map(([status, answer]) => [status, describe(answer)]))

/** The media types of an operation that has types other than the usual one. */
function producesOf(answers: ApiOperation['answers'], usual: string): { produces?: string[] } {
  const types = new Set(Object.values(answers).map(({ type = usual }) => type))
  return types.size === 1 && types.has(usual) ? {} : { produces: [...types] }
}
