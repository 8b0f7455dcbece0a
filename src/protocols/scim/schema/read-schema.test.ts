import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Path } from '#kernel/issues.ts'
import type { JsonObject } from '#kernel/json.ts'
import { evaluateFilter } from '#protocols/scim/filter/evaluate-filter.ts'
import { parseFilter } from '#protocols/scim/filter/parse-filter.ts'
import { applyPatch } from '#protocols/scim/patch/apply-patch.ts'
import { parsePatch } from '#protocols/scim/patch/parse-patch.ts'
import { readResource } from '#protocols/scim/read-resource.ts'
import { requireAttributes } from '#protocols/scim/resource-rules.ts'
import { extendResourceSchema, maxExtensions, maxSchemaAttributes, readSchema } from './read-schema.ts'
import { ResourceSchema } from './resource-schema.ts'
import { type Schema, schemaDocument } from './schema.ts'
import { enterpriseUserSchema, groupSchema, userSchema } from './standard-schemas.ts'

const id = 'urn:example:params:scim:schemas:extension:site:2.0:User'

function read(document: unknown): { schema: Schema | undefined; problems: string[] } {
  const problems: string[] = []
  const schema = readSchema(document, (path: Path, message) => problems.push(`${path.join('.')}: ${message}`))
  return { schema, problems }
}

const one = (attribute: JsonObject): JsonObject => ({ id, attributes: [attribute] })

test.each([userSchema, groupSchema, enterpriseUserSchema])('reads what it prints: $name', (schema) => {
  const { schema: again, problems } = read(schemaDocument('https://x/scim', schema))
  expect(problems).toEqual([])
  expect(again).toEqual(schema)
})

test('an attribute is a single, optional, readWrite text unless it says otherwise', () => {
  const { schema } = read({ id, name: 'Site', attributes: [{ name: 'floor' }, { name: 'url', type: 'reference' }] })
  expect(schema).toMatchObject({
    id,
    name: 'Site',
    attributes: [
      { name: 'floor', type: 'string', multiValued: false, required: false, caseExact: false, returned: 'default' },
      { name: 'url', caseExact: true, mutability: 'readWrite', uniqueness: 'none', subAttributes: [] },
    ],
  })
})

test('a writeOnly attribute is never returned', () => {
  expect(read(one({ name: 'pin', mutability: 'writeOnly' })).schema?.attributes[0]?.returned).toBe('never')
})

describe('reports every problem with its path', () => {
  test.each<[unknown, string[]]>([
    [null, [': a schema must be an object']],
    [[], [': a schema must be an object']],
    [{}, [': "id" is required', ': "attributes" must be a list of attributes that is not empty']],
    [
      { id: 'site', attributes: {}, color: 1 },
      [
        'color: unknown key "color"',
        `id: "site" is not a schema's URI, such as urn:example:User`,
        'attributes: "attributes" must be a list of attributes that is not empty',
      ],
    ],
    [{ ...one({ name: 'a' }), id: 'urn:a b' }, [`id: "urn:a b" is not a schema's URI, such as urn:example:User`]],
    [{ ...one({ name: 'a' }), required: 'yes' }, ['required: "required" must be true or false']],
    [one({}), ['attributes.0: "name" is required']],
    [one({ name: 5 }), ['attributes.0.name: "name" must be a text of at most 1000 characters']],
    [one({ name: '__proto__' }), [expect.stringContaining(`is not an attribute's name`)]],
    [one({ name: 'constructor' }), [`attributes.0.name: "constructor" cannot be an attribute's name`]],
    [one({ name: 'toString' }), [`attributes.0.name: "toString" cannot be an attribute's name`]],
    [one({ name: 'a.b' }), [expect.stringContaining(`is not an attribute's name`)]],
    [one({ name: 'a:b' }), [expect.stringContaining(`is not an attribute's name`)]],
    [one({ name: 'a[b' }), [expect.stringContaining(`is not an attribute's name`)]],
    [one({ name: '1a' }), [expect.stringContaining(`is not an attribute's name`)]],
    [
      one({ name: 'a', multivalued: true }),
      ['attributes.0.multivalued: unknown key "multivalued" (did you mean "multiValued"?)'],
    ],
    [
      one({
        name: 'a',
        type: 'String',
        mutability: 'x',
        returned: 1,
        uniqueness: 'sometimes',
        required: 1,
        caseExact: 'no',
      }),
      [
        'attributes.0.type: "type" must be one of string, boolean, decimal, integer, dateTime, binary, reference, complex (did you mean "string"?)',
        'attributes.0.mutability: "mutability" must be one of readWrite, readOnly, immutable, writeOnly',
        'attributes.0.returned: "returned" must be one of default, always, request, never',
        'attributes.0.caseExact: "caseExact" must be true or false',
        'attributes.0.required: "required" must be true or false',
        'attributes.0.uniqueness: "uniqueness" must be one of none, server, global',
      ],
    ],
    [
      one({ name: 'a', mutability: 'writeOnly', returned: 'default' }),
      ['attributes.0.returned: a writeOnly attribute is returned never'],
    ],
    [
      one({ name: 'a', canonicalValues: 'x' }),
      ['attributes.0.canonicalValues: "canonicalValues" must be a list of at most 200 texts'],
    ],
    [
      one({ name: 'a', canonicalValues: ['x', 5] }),
      ['attributes.0.canonicalValues: "canonicalValues" must be a list of at most 200 texts'],
    ],
    [
      one({ name: 'a', referenceTypes: ['User'] }),
      ['attributes.0.referenceTypes: only an attribute of type reference has referenceTypes'],
    ],
    [
      one({ name: 'a', subAttributes: [{ name: 'b' }] }),
      ['attributes.0.subAttributes: only an attribute of type complex has subAttributes'],
    ],
    [
      one({ name: 'a', type: 'complex' }),
      ['attributes.0: "subAttributes" must be a list of attributes that is not empty'],
    ],
    [
      one({
        name: 'a',
        type: 'complex',
        subAttributes: [{ name: 'b', type: 'complex', subAttributes: [{ name: 'c' }] }],
      }),
      ['attributes.0.subAttributes.0.type: a sub-attribute cannot be complex itself'],
    ],
    [
      { id, attributes: [{ name: 'a' }, { name: 'A' }] },
      ['attributes.1.name: "A" is there twice; letter case does not count'],
    ],
    [{ id, attributes: [5, { name: 'a' }] }, ['attributes.0: an attribute must be an object']],
    [
      { id, attributes: Array.from({ length: maxSchemaAttributes + 1 }, (_, i) => ({ name: `a${i}` })) },
      ['attributes: there are more than 200 attributes'],
    ],
  ])('%j', (document, problems) => {
    const outcome = read(document)
    expect(outcome.problems).toEqual(problems)
    expect(outcome.schema).toBeUndefined()
  })

  test('reads any document or reports problems', () => {
    const key = fc.constantFrom(
      'id',
      'attributes',
      'name',
      'type',
      'subAttributes',
      'canonicalValues',
      '__proto__',
      'x',
    )
    const tree = fc.letrec((tie) => ({
      node: fc.oneof(
        { maxDepth: 5 },
        fc.jsonValue({ maxDepth: 1 }),
        fc.constantFrom('complex', id, 'a'),
        fc.array(tie('node'), { maxLength: 3 }),
        fc.dictionary(key, tie('node'), { maxKeys: 5 }),
      ),
    })).node
    fc.assert(
      fc.property(tree, (document) => {
        const { schema, problems } = read(document)
        expect(schema === undefined).toBe(problems.length > 0)
      }),
      { numRuns: 500 },
    )
  })
})

describe('a resource type with schemas of its owner', () => {
  const problems: string[] = []
  const extend = (schemas: readonly Schema[], base = new ResourceSchema(userSchema, [enterpriseUserSchema])) => {
    problems.length = 0
    return extendResourceSchema(base, schemas, (path, message) => problems.push(`${path.join('.')}: ${message}`))
  }
  const schemaOf = (document: unknown): Schema => read(document).schema ?? expect.fail('the document has problems')
  const site = schemaOf({
    id,
    name: 'Site',
    description: 'Where people sit',
    required: true,
    attributes: [
      { name: 'floor', type: 'integer', required: true, description: 'The floor.' },
      {
        name: 'badges',
        type: 'complex',
        multiValued: true,
        subAttributes: [{ name: 'value' }, { name: 'color', canonicalValues: ['red'] }],
      },
    ],
  })
  const more = schemaOf({
    id: userSchema.id.toUpperCase(),
    name: 'User',
    attributes: [{ name: 'shoeSize', type: 'decimal' }],
  })
  const schema = extend([site, more])

  test('accepts more core attributes and extensions', () => {
    expect(problems).toEqual([])
    const resource = readResource(schema, {
      userName: 'b',
      SHOESIZE: 41.5,
      [id]: { floor: '7', badges: [{ value: 'x', COLOR: 'red' }] },
    })
    expect(resource).toEqual({
      userName: 'b',
      shoeSize: 41.5,
      [id]: { floor: 7, badges: [{ value: 'x', color: 'red' }] },
    })
    expect(evaluateFilter(parseFilter(`shoeSize gt 40 and ${id}:badges[color eq "RED"]`, schema), resource)).toBe(true)
    const operations = parsePatch(schema, { Operations: [{ op: 'replace', path: `${id}:floor`, value: 8 }] })
    expect(applyPatch(schema, resource, operations)).toMatchObject({ [id]: { floor: 8 } })
  })

  test('discovery prints them', () => {
    const document = schemaDocument('https://x', schema.extensions[1] ?? expect.fail('there is no extension'))
    expect(document).toMatchObject({
      id,
      description: 'Where people sit',
      attributes: [
        { name: 'floor', type: 'integer', required: true, description: 'The floor.' },
        { name: 'badges', subAttributes: [{ name: 'value' }, { name: 'color', canonicalValues: ['red'] }] },
      ],
    })
    expect(schemaDocument('https://x', schema.core)['attributes']).toContainEqual(
      expect.objectContaining({ name: 'shoeSize', type: 'decimal' }),
    )
    expect(schema.extensions.map((extension) => [extension.id, extension.required === true])).toEqual([
      [enterpriseUserSchema.id, false],
      [id, true],
    ])
  })

  test('a required attribute must have a value', () => {
    expect(() => requireAttributes(schema, { userName: 'b' })).toThrow(`${id} is required.`)
    expect(() => requireAttributes(schema, { userName: 'b', [id]: { badges: [] } })).toThrow('floor is required.')
    expect(() => requireAttributes(schema, { userName: 'b', [id]: { floor: 1 } })).not.toThrow()
    const remove = parsePatch(schema, { Operations: [{ op: 'remove', path: id }] })
    expect(() => applyPatch(schema, { userName: 'b', [id]: { floor: 1 } }, remove)).toThrow(
      expect.objectContaining({ keyword: 'mutability' }),
    )
  })

  test('an extension that a change adds must be complete', () => {
    const optional = extend([{ ...site, required: false }])
    const add = parsePatch(optional, { Operations: [{ op: 'add', path: `${id}:badges`, value: [{ value: 'x' }] }] })
    expect(() => applyPatch(optional, { userName: 'b' }, add)).toThrow(
      expect.objectContaining({ keyword: 'invalidValue' }),
    )
    expect(applyPatch(optional, { userName: 'b', [id]: { floor: 1 } }, add)).toMatchObject({
      [id]: { floor: 1, badges: [{ value: 'x' }] },
    })
  })

  test('reports names that exist', () => {
    const taken = extend([{ ...more, attributes: [...more.attributes, ...userSchema.attributes.slice(0, 1)] }])
    expect(problems).toEqual([`0.attributes.1.name: ${userSchema.id} already has an attribute "userName"`])
    expect(taken.core.attributes).toHaveLength(userSchema.attributes.length + 1)
    extend([schemaOf({ id: userSchema.id, attributes: [{ name: 'ID' }, { name: 'externalid' }] })])
    expect(problems).toHaveLength(2)
    extend([schemaOf({ id: enterpriseUserSchema.id, attributes: [{ name: 'badge' }, { name: 'Manager' }] })])
    expect(problems).toEqual([`0.attributes.1.name: ${enterpriseUserSchema.id} already has an attribute "Manager"`])
  })

  test('their number is limited', () => {
    extend(Array.from({ length: maxExtensions + 1 }, (_, i) => ({ ...site, id: `urn:x:${i}` })))
    expect(problems).toEqual([expect.stringContaining('more than 50 extensions'), expect.any(String)])
  })

  test('distinguishes a URN that begins with another', () => {
    const inner = { ...site, id: `${userSchema.id}:site` }
    expect(extend([inner]).resolveAttribute(`${inner.id}:floor`)).toMatchObject({ extension: inner.id })
    expect(extend([inner]).resolveAttribute(`${userSchema.id}:title`)?.extension).toBeUndefined()
  })
})
