import * as z from 'zod'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'

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

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

/** An operation as a filter describes it. Without `answer` and `answers` it returns 204. */
export interface OperationDescription {
  /** The method, and the path below that of the API, such as `GET /approvals/{id}`. */
  readonly route: Method | `${Method} /${string}`
  readonly summary: string
  /** Query parameters by name, with their descriptions. */
  readonly query?: Readonly<Record<string, string>>
  /** The name of a definition. */
  readonly body?: string
  /** The definition of the answer with status 200; `Name[]` for a list. */
  readonly answer?: string
  /** Answers with another status, or without a definition, by status. */
  readonly answers?: Readonly<Record<string, ApiAnswer>>
  /** Failures that deserve a description, by status. */
  readonly failures?: Readonly<Record<string, string>>
}

export interface ApiOperation extends Pick<OperationDescription, 'summary' | 'query' | 'body'> {
  readonly id: string
  readonly method: string
  /** Empty for the path of the API itself. */
  readonly path: string
  /** By status. */
  readonly answers: Readonly<Record<string, ApiAnswer>>
}

/** The requests and answers of an HTTP API, the single source of its Swagger and OpenAPI documents. */
interface ApiDescription {
  readonly title: string
  readonly version: string
  /** Definitions of answers by name. */
  readonly answers: Readonly<Record<string, z.ZodType>>
  /** Definitions of request bodies by name. */
  readonly bodies: Readonly<Record<string, z.ZodType>>
  /** The failure answer of every operation, unless it declares another. */
  readonly failure: ApiAnswer
  /** By id. */
  readonly operations: Readonly<Record<string, OperationDescription>>
}

export interface ApiPlace {
  /** `https://host` */
  readonly origin: string
  /** The base path of the document; empty for the host itself. */
  readonly base: string
  /** The path of the API below it, such as `/register`. */
  readonly prefix: string
}

/** `prefix` may be the end of the mount or follow it. */
export const apiPlace = (prefix: string, { mount, request }: Pick<Exchange, 'mount' | 'request'>): ApiPlace => ({
  origin: request.origin,
  base: mount.endsWith(prefix) ? mount.slice(0, -prefix.length) : mount,
  prefix,
})

/** The file names of the documents, below the path of an API. */
const apiDocuments = { swagger: 'swagger.json', openapi: 'openapi.json' } as const

const json = 'application/json'

/** Writes the documents of one API. The schemas are translated once. */
export class DescribedApi {
  readonly description: ApiDescription
  readonly operations: readonly ApiOperation[]
  readonly #definitions = new Map<string, JsonObject>()

  constructor(description: ApiDescription) {
    this.description = description
    this.operations = Object.entries(description.operations).map(([id, operation]) =>
      readOperation(id, operation, description.failure),
    )
  }

  /** The document of that file name; undefined for another name. */
  document(file: string, place: ApiPlace): JsonObject | undefined {
    if (file === apiDocuments.swagger) return this.swagger(place)
    return file === apiDocuments.openapi ? this.openApi(place) : undefined
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
      consumes: [json],
      produces: [json],
      paths: this.#paths(prefix, ({ id, summary, path, query = {}, body, answers }) => ({
        operationId: id,
        summary,
        ...producesOf(answers),
        parameters: [
          ...namesIn(path).map((name) => ({ name, in: 'path', required: true, type: 'string' })),
          ...Object.entries(query).map(([name, description]) => ({
            name,
            description,
            in: 'query',
            required: false,
            type: 'string',
          })),
          ...(body === undefined ? [] : [{ name: 'body', in: 'body', required: true, schema: reference(body) }]),
        ],
        responses: mapAnswers(answers, ({ description, schema, many }) => ({
          description,
          ...(schema === undefined ? {} : { schema: reference(schema, many) }),
        })),
      })),
      definitions: this.#schemas('#/definitions/', 'draft-4', plainSchema),
    }
  }

  /** OpenAPI 3.1. */
  openApi({ origin, base, prefix }: ApiPlace): JsonObject {
    const { title, version } = this.description
    const content = (name: string, many = false, type = json): JsonObject => {
      const one = { $ref: `#/components/schemas/${name}` }
      return { [type]: { schema: many ? { type: 'array', items: one } : one } }
    }
    return {
      openapi: '3.1.0',
      info: { title, version },
      servers: [{ url: `${origin}${base}` }],
      paths: this.#paths(prefix, ({ id, summary, path, query = {}, body, answers }) => ({
        operationId: id,
        summary,
        parameters: [
          ...namesIn(path).map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } })),
          ...Object.entries(query).map(([name, description]) => ({
            name,
            description,
            in: 'query',
            required: false,
            schema: { type: 'string' },
          })),
        ],
        ...(body === undefined ? {} : { requestBody: { required: true, content: content(body) } }),
        responses: mapAnswers(answers, ({ description, schema, many, type }) => ({
          description,
          ...(schema !== undefined
            ? { content: content(schema, many, type) }
            : type === undefined
              ? {}
              : { content: { [type]: {} } }),
        })),
      })),
      components: { schemas: this.#schemas('#/components/schemas/', 'draft-2020-12', (schema) => schema) },
    }
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
    const adapted = Object.fromEntries(Object.entries(made).map(([name, schema]) => [name, adapt(schema)]))
    this.#definitions.set(target, adapted)
    return adapted
  }
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

/** Swagger 2.0 has no alternatives: null becomes `x-nullable`, and other alternatives are left open. */
function plainSchema(schema: JsonObject): JsonObject {
  const { anyOf, oneOf, ...rest } = schema
  const alternatives = [anyOf, oneOf].flat().filter(isObject)
  const plain: JsonObject = Object.fromEntries(
    Object.entries(rest).map(([name, value]) => [name, plainValue(value)] as const),
  )
  if (alternatives.length === 0) return plain
  const others = alternatives.filter(({ type }) => type !== 'null')
  const [only] = others
  if (others.length === 1 && only !== undefined) return { ...plainSchema(only), ...plain, 'x-nullable': true }
  return others.every(({ type, $ref }) => type === 'object' || $ref !== undefined)
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

/** The media types of an operation that has types other than JSON. */
function producesOf(answers: ApiOperation['answers']): { produces?: string[] } {
  const types = new Set(Object.values(answers).map(({ type = json }) => type))
  return types.size === 1 && types.has(json) ? {} : { produces: [...types] }
}
