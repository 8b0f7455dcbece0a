import { describe, expect, test } from 'vitest'
import { type Operation, readApiDocument } from './api-document.ts'
import { commandVariables, curlCommand } from './curl-command.ts'
import { schemaExample } from './schema-example.ts'
import { type SchemaNode, schemaTree } from './schema-tree.ts'

const document = readApiDocument({
  openapi: '3.1.0',
  info: { title: 'Things', version: '1.2' },
  servers: [{ url: 'https://x/api' }],
  security: [{ session: [] }, { bearer: [] }],
  tags: [{ name: 'Second' }, { name: 'First' }, { name: 'Empty' }],
  paths: {
    '/things': {
      get: { operationId: 'listThings', tags: ['First'], summary: 'Lists things', responses: {} },
      post: {
        operationId: 'addThing',
        tags: ['Second'],
        requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Thing' } } } },
        responses: { '201': { description: 'Added' }, default: { description: 'Wrong', content: {} } },
      },
    },
    '/things/{thingId}': {
      delete: { tags: ['Second'], parameters: [{ name: 'thingId', in: 'path', required: true }], responses: {} },
    },
  },
  components: {
    securitySchemes: {
      session: { type: 'apiKey', in: 'cookie', name: 'portal' },
      bearer: { type: 'http', scheme: 'bearer' },
    },
    schemas: {
      Thing: {
        type: 'object',
        required: ['name'],
        properties: {
          name: { type: 'string', maxLength: 80, description: "It's a name" },
          kind: { enum: ['a', 'b'] },
          parts: { type: 'array', items: { $ref: '#/components/schemas/Thing' } },
          owner: { anyOf: [{ type: 'string' }, { type: 'null' }] },
          more: { type: 'object', additionalProperties: { type: 'integer' } },
          either: { anyOf: [{ type: 'object', properties: { x: { type: 'boolean' } } }, { type: 'string' }] },
        },
      },
      Circle: { $ref: '#/components/schemas/Circle' },
    },
  },
})

const operationOf = (id: string): Operation => {
  const found = document.groups.flatMap(({ operations }) => operations).find((one) => one.id === id)
  if (found === undefined) throw new Error(`no operation ${id}`)
  return found
}

describe('a document', () => {
  test('has groups in its own order, without empty ones', () => {
    expect(document.groups.map(({ name, operations }) => [name, operations.map(({ id }) => id)])).toEqual([
      ['Second', ['addThing', 'delete /things/{thingId}']],
      ['First', ['listThings']],
    ])
    expect(document.credentials).toEqual([{ kind: 'cookie', name: 'portal' }, { kind: 'bearer' }])
  })

  test.each([undefined, null, 1, 'x', [], { paths: 1, info: [], servers: {}, security: {}, components: 'x' }])(
    'that is %j shows nothing, and breaks nothing',
    (json) => {
      expect(readApiDocument(json)).toEqual({
        title: '',
        version: '',
        servers: [],
        credentials: undefined,
        groups: [],
        schemas: {},
      })
    },
  )

  test('that says nothing about authentication is distinguished from one that needs none', () => {
    expect(readApiDocument({ security: [] }).credentials).toEqual([])
    expect(readApiDocument({}).credentials).toBeUndefined()
  })
})

describe('a schema', () => {
  const tree = schemaTree({ $ref: '#/components/schemas/Thing' }, document.schemas)
  const memberOf = (node: SchemaNode, name: string): SchemaNode => {
    const found = node.members.find((one) => one.name === name)
    if (found === undefined) throw new Error(`no member ${name}`)
    return found.node
  }

  test('has members with types and limits', () => {
    expect(tree.type).toBe('Thing')
    expect(tree.members.map(({ name, required }) => [name, required])).toContainEqual(['name', true])
    expect(memberOf(tree, 'name')).toMatchObject({
      type: 'string',
      limits: ['maxLength: 80'],
      description: "It's a name",
    })
    expect(memberOf(tree, 'kind').type).toBe('"a" | "b"')
    expect(memberOf(tree, 'owner').type).toBe('string | null')
    expect(memberOf(tree, 'more').members).toMatchObject([{ name: '*', kind: 'any name', node: { type: 'integer' } }])
    expect(memberOf(tree, 'either').members).toMatchObject([{ kind: 'alternative' }, { kind: 'alternative' }])
  })

  test('that contains itself is cut there', () => {
    const parts = memberOf(tree, 'parts')
    expect(parts).toMatchObject({ type: 'Thing[]', members: [], isCut: true })
    expect(schemaTree({ $ref: '#/components/schemas/Circle' }, document.schemas)).toMatchObject({ members: [] })
  })

  test('that is very deep or very large is cut', () => {
    let deep: unknown = { type: 'string' }
    for (let i = 0; i < 5_000; i++) deep = { type: 'object', properties: { inner: deep } }
    const wide = (level: number): unknown =>
      level === 0
        ? { type: 'string' }
        : { type: 'object', properties: Object.fromEntries(Array.from({ length: 30 }, (_, i) => [i, wide(level - 1)])) }
    expect(JSON.stringify(schemaTree(deep, {})).length).toBeLessThan(2_000)
    expect(JSON.stringify(schemaTree(wide(3), {})).length).toBeLessThan(400_000)
    expect(JSON.stringify(schemaExample(deep, {})).length).toBeLessThan(200)
    expect(JSON.stringify(schemaExample(wide(3), {})).length).toBeLessThan(40_000)
  })

  test('has an example', () => {
    const schema = { $ref: '#/components/schemas/Thing' }
    expect(schemaExample(schema, document.schemas)).toEqual({
      name: 'string',
      kind: 'a',
      parts: [{}],
      owner: 'string',
      more: {},
      either: { x: true },
    })
    expect(schemaExample(schema, document.schemas, { brief: true })).toEqual({ name: 'string' })
    expect(schemaExample({ type: 'string', examples: ['x'] }, {})).toBe('x')
  })
})

describe('the curl command', () => {
  test('has variables for credentials and parts of the path', () => {
    expect(curlCommand(document, operationOf('listThings'))).toBe(
      'curl "https://x/api/things" \\\n  -b "portal=$SESSION"',
    )
    expect(
      curlCommand({ ...document, credentials: [{ kind: 'bearer' }] }, operationOf('delete /things/{thingId}')),
    ).toBe('curl -X DELETE "https://x/api/things/$THING_ID" \\\n  -H "Authorization: Bearer $TOKEN"')
    expect(curlCommand(document, operationOf('addThing'))).toBe(
      [
        'curl -X POST "https://x/api/things"',
        '-b "portal=$SESSION"',
        '-H "X-Requested-With: curl"',
        `-H 'Content-Type: application/json'`,
        `-d '{"name":"string"}'`,
      ].join(' \\\n  '),
    )
  })

  test('has its variables listed', () => {
    expect(commandVariables(operationOf('listThings'))).toEqual([])
    expect(commandVariables(operationOf('delete /things/{thingId}'))).toEqual(['$THING_ID'])
  })

  test('has required parameters of the query, and no others', () => {
    const parameter = { place: 'query', description: '', schema: {} }
    const parameters = [
      { ...parameter, name: 'workflowName', required: true },
      { ...parameter, name: '$(id)', required: true },
      { ...parameter, name: 'uuid', required: false },
    ]
    expect(curlCommand({ ...document, credentials: [] }, { ...operationOf('listThings'), parameters })).toBe(
      'curl "https://x/api/things?workflowName=$WORKFLOW_NAME&%24(id)=$__ID_"',
    )
  })

  test('sends a form as a form', () => {
    const type = 'application/x-www-form-urlencoded'
    const schema = { type: 'object', required: ['a'], properties: { a: { const: "it's" } } }
    const operation = { ...operationOf('addThing'), body: { type, schema } }
    expect(curlCommand({ ...document, credentials: [] }, operation)).toBe(
      `curl -X POST "https://x/api/things" \\\n  --data-urlencode 'a=it'\\''s'`,
    )
  })

  test('runs nothing that a document says', () => {
    const hostile = {
      ...document,
      servers: ['https://x/$(id)`id`"; id #'],
      credentials: [{ kind: 'cookie', name: 'a`id`$(id)"' }] as const,
    }
    const schema = { const: "'; id; '" }
    const operation = { ...operationOf('addThing'), path: '/$(id)/{a}', body: { type: "x'; id", schema } }
    expect(curlCommand(hostile, operation)).toBe(
      [
        'curl -X POST "https://x/\\$(id)\\`id\\`\\"; id #/\\$(id)/$A"',
        '-b "a\\`id\\`\\$(id)\\"=$SESSION"',
        '-H "X-Requested-With: curl"',
        `-H 'Content-Type: x'\\''; id'`,
        `-d '"'\\''; id; '\\''"'`,
      ].join(' \\\n  '),
    )
  })
})
