import * as z from 'zod'
import { registerApiVersion } from '#contract/register.ts'
import type { JsonObject } from '#kernel/json.ts'
import { config, errorResponse, listItem, registerRequest, submitted } from './register-schemas.ts'

const title = 'Registration API'

const schemas = {
  Config: config,
  AttributeValueListItem: listItem,
  RegisterRequest: registerRequest,
  SubmittedResponse: submitted,
  ErrorResponse: errorResponse,
}

type SchemaName = keyof typeof schemas

interface Answer {
  readonly description: string
  readonly schema: SchemaName
  readonly many?: boolean
}

interface Operation {
  readonly path: string
  readonly method: 'get' | 'post'
  readonly id: string
  readonly summary: string
  readonly query?: readonly { readonly name: string; readonly description: string }[]
  readonly body?: SchemaName
  readonly answers: Readonly<Record<string, Answer>>
}

const refused = (description: string): Answer => ({ description, schema: 'ErrorResponse' })

const operations: readonly Operation[] = [
  {
    path: '/register/config',
    method: 'get',
    id: 'getConfig',
    summary: 'The configuration of the registration form',
    answers: { '200': { description: 'The form', schema: 'Config' }, '429': refused('Too many requests') },
  },
  {
    path: '/register/values',
    method: 'get',
    id: 'getValues',
    summary: 'The allowed values of list attributes',
    query: [
      { name: 'name', description: 'Attribute whose values are wanted; all lists when absent' },
      { name: 'search', description: 'Value to search for' },
    ],
    answers: {
      '200': { description: 'The values', schema: 'AttributeValueListItem', many: true },
      '400': refused('There is no such list'),
      '429': refused('Too many requests'),
    },
  },
  {
    path: '/register/submit',
    method: 'post',
    id: 'submit',
    summary: 'Submits a registration, which starts a workflow',
    body: 'RegisterRequest',
    answers: {
      '200': { description: 'The registration was taken', schema: 'SubmittedResponse' },
      '400': refused('The body is not as it should be'),
      '413': refused('The body is too large'),
      '415': refused('The body is not JSON'),
      '429': refused('Too many requests'),
      '500': refused('Failed validation, with everything that is wrong'),
    },
  },
]

/** Swagger 2.0. `basePath` is where the paths begin, empty for the host itself. */
export function swagger(basePath: string): JsonObject {
  const reference = (name: SchemaName, many = false): JsonObject => {
    const one = { $ref: `#/definitions/${name}` }
    return many ? { type: 'array', items: one } : one
  }
  return {
    swagger: '2.0',
    info: { title, version: registerApiVersion },
    basePath: basePath === '' ? '/' : basePath,
    schemes: ['https', 'http'],
    consumes: ['application/json'],
    produces: ['application/json'],
    paths: pathsOf(({ id, summary, query = [], body, answers }) => ({
      operationId: id,
      summary,
      parameters: [
        ...query.map((parameter) => ({ ...parameter, in: 'query', required: false, type: 'string' })),
        ...(body === undefined ? [] : [{ name: 'body', in: 'body', required: true, schema: reference(body) }]),
      ],
      responses: mapAnswers(answers, ({ description, schema, many }) => ({
        description,
        schema: reference(schema, many),
      })),
    })),
    definitions: jsonSchemas('draft-4'),
  }
}

/** OpenAPI 3.1. */
export function openApi(server: string): JsonObject {
  const content = (name: SchemaName, many = false): JsonObject => {
    const one = { $ref: `#/components/schemas/${name}` }
    return { 'application/json': { schema: many ? { type: 'array', items: one } : one } }
  }
  return {
    openapi: '3.1.0',
    info: { title, version: registerApiVersion },
    servers: [{ url: server }],
    paths: pathsOf(({ id, summary, query = [], body, answers }) => ({
      operationId: id,
      summary,
      parameters: query.map((parameter) => ({
        ...parameter,
        in: 'query',
        required: false,
        schema: { type: 'string' },
      })),
      ...(body === undefined ? {} : { requestBody: { required: true, content: content(body) } }),
      responses: mapAnswers(answers, ({ description, schema, many }) => ({
        description,
        content: content(schema, many),
      })),
    })),
    components: { schemas: jsonSchemas('draft-2020-12') },
  }
}

function pathsOf(describe: (operation: Operation) => JsonObject): JsonObject {
  const paths: Record<string, JsonObject> = {}
  for (const operation of operations) paths[operation.path] = { [operation.method]: describe(operation) }
  return paths
}

const mapAnswers = (answers: Operation['answers'], describe: (answer: Answer) => JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(answers).map(([status, answer]) => [status, describe(answer)]))

function jsonSchemas(target: 'draft-4' | 'draft-2020-12'): JsonObject {
  return Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => {
      const { $schema: _, ...made } = z.toJSONSchema(schema, { target, override: dropBounds })
      return [name, made as JsonObject]
    }),
  )
}

/** That a number fits the machine is no part of the description; Swagger has no names of properties by a schema. */
function dropBounds({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  if (jsonSchema.type === 'integer') {
    delete jsonSchema.minimum
    delete jsonSchema.maximum
  }
  delete jsonSchema.propertyNames
}
