import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { applyPatch, changedAttributes } from '#protocols/scim/patch/apply-patch.ts'
import { parsePatch } from '#protocols/scim/patch/parse-patch.ts'
import { readResource } from '#protocols/scim/read-resource.ts'
import { replaceResource } from '#protocols/scim/resource-rules.ts'
import { readAttribute } from '#protocols/scim/schema/resource.ts'
import { type AttributeRef, ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { attribute, type SchemaAttribute } from '#protocols/scim/schema/schema.ts'
import { enterpriseUserSchema, userSchema } from '#protocols/scim/schema/standard-schemas.ts'
import { sampled } from '#testing/hostile/sample.ts'

/** Random resources and operations, generated from the schema's own tables. */
const schema = new ResourceSchema(userSchema, [
  enterpriseUserSchema,
  {
    id: 'urn:example:params:scim:schemas:extension:site:2.0:User',
    name: 'Site',
    description: '',
    attributes: [
      attribute('badge', '', { mutability: 'immutable' }),
      attribute('tags', '', { multiValued: true }),
      attribute('codes', '', { type: 'integer', multiValued: true }),
      attribute('since', '', { type: 'dateTime' }),
      attribute('keys', '', {
        type: 'complex',
        multiValued: true,
        subAttributes: [
          attribute('value', '', { mutability: 'immutable' }),
          attribute('door', '', { required: true }),
          attribute('seen', '', { type: 'dateTime', mutability: 'readOnly' }),
        ],
      }),
    ],
  },
])

const words = ['work', 'home', 'Work', 'a', 'b', '', 'urn:x:y', 'x y', '{"value":"a"}', 'True'] as const
const dates = ['2020-02-29T10:00:00Z', '2020-02-29T12:00:00+02:00', '1999-12-31T23:59:59.5Z'] as const

function single(leaf: SchemaAttribute): fc.Arbitrary<JsonValue> {
  switch (leaf.type) {
    case 'boolean':
      return fc.boolean()
    case 'integer':
      return fc.integer({ min: -3, max: 3 })
    case 'decimal':
      return fc.constantFrom(-1, 0.5, 3)
    case 'dateTime':
      return fc.constantFrom(...dates)
    case 'complex': {
      const parts = Object.fromEntries(leaf.subAttributes.map((sub) => [sub.name, anyOf(sub)]))
      return fc.record(parts, { requiredKeys: [] }) as fc.Arbitrary<JsonObject>
    }
    default:
      return fc.constantFrom(...words)
  }
}

const anyOf = (leaf: SchemaAttribute): fc.Arbitrary<JsonValue> =>
  leaf.multiValued ? fc.array(single(leaf), { maxLength: 4 }) : single(leaf)

const refs = Array.from(schema.attributes())
const nameOf = ({ attribute: { name }, extension }: AttributeRef): string =>
  extension === undefined ? name : `${extension}:${name}`

/** As read back from a service: complete, in the schema's form, with what only the service sets. */
const stored: fc.Arbitrary<JsonObject> = fc
  .record(Object.fromEntries(refs.map((ref) => [nameOf(ref), anyOf(ref.attribute)])), { requiredKeys: [] })
  .map((body) => {
    const own = { id: 'u1', meta: { resourceType: 'User' }, groups: [{ value: 'g1' }] }
    try {
      return { ...own, ...readResource(schema, { ...body, userName: 'b', schemas: [] }) }
    } catch {
      return { ...own, userName: 'b' }
    }
  })
  .map(deepFrozen)

/** Texts with JSON are elements in input, but only texts in comparisons. */
const literal = (value: JsonValue): string => JSON.stringify(value).replace(/^"\{.*/, '"a"')

const target: fc.Arbitrary<{ path: string; leaf: SchemaAttribute }> = fc.constantFrom(...refs).chain((ref) => {
  const { attribute: of } = ref
  const name = nameOf(ref)
  const whole = fc.constant({ path: name, leaf: of })
  if (of.type !== 'complex') return whole
  const sub = fc.constantFrom(...of.subAttributes)
  const part = sub.map((leaf) => ({ path: `${name}.${leaf.name}`, leaf }))
  if (!of.multiValued) return fc.oneof(whole, part)
  const filter = sub.chain((leaf) => single(leaf).map((value) => `${leaf.name} eq ${literal(value)}`))
  const element = { ...of, multiValued: false }
  return fc.oneof(
    whole,
    part,
    filter.map((text) => ({ path: `${name}[${text}]`, leaf: element })),
    fc.tuple(filter, sub).map(([text, leaf]) => ({ path: `${name}[${text}].${leaf.name}`, leaf })),
  )
})

const verb = fc.constantFrom('add', 'Add', 'replace', 'Replace', 'remove', 'Remove')

const operation: fc.Arbitrary<JsonObject> = fc.oneof(
  target.chain(({ path, leaf }) =>
    fc.record({ op: verb, path: fc.constant(path), value: fc.oneof({ weight: 6, arbitrary: anyOf(leaf) }, noise()) }),
  ),
  target.chain(({ path, leaf }) =>
    fc.record({ op: fc.constantFrom('add', 'replace'), value: anyOf(leaf).map((value) => ({ [path]: value })) }),
  ),
)

function noise(): fc.Arbitrary<JsonValue> {
  return fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<JsonValue>
}

function deepFrozen<T extends JsonValue>(value: T): T {
  if (typeof value === 'object' && value !== null) Object.values(value).forEach(deepFrozen)
  return Object.freeze(value)
}

const apply = (before: JsonObject, operations: readonly JsonObject[]): JsonObject =>
  applyPatch(schema, before, parsePatch(schema, deepFrozen({ Operations: operations })))

/** The outcome, or undefined if it was correctly rejected. Any other error fails the test. */
function attempt(before: JsonObject, operations: readonly JsonObject[]): JsonObject | undefined {
  try {
    return apply(before, operations)
  } catch (error) {
    expect(error).toBeInstanceOf(GatewayError)
    expect(error).toMatchObject({ status: 400, keyword: expect.any(String) })
    return undefined
  }
}

vi.setConfig({ testTimeout: 30_000 })
const runs = { numRuns: sampled(100, 400) }

describe('any input', () => {
  test('is applied or rejected with 400, and the given resource does not change', () => {
    let applied = 0
    fc.assert(
      fc.property(stored, fc.array(operation, { minLength: 1, maxLength: 4 }), (before, operations) => {
        const after = attempt(before, operations)
        if (after === undefined) return
        applied++
        expect(JSON.parse(JSON.stringify(after))).toEqual(after)
        expect(after).toMatchObject({ id: before['id'], userName: expect.any(String), groups: before['groups'] })
      }),
      runs,
    )
    expect(applied).toBeGreaterThan(runs.numRuns / 10)
  })

  test('values stay unique, at most one is primary if an operation set it, and none is empty', () => {
    fc.assert(
      fc.property(stored, operation, (before, one) => {
        const after = attempt(before, [one])
        if (after === undefined) return
        for (const ref of changedAttributes(schema, before, after)) {
          const value = readAttribute(after, ref)
          expect(value).not.toBeNull()
          if (!Array.isArray(value)) continue
          expect(value.length).toBeGreaterThan(0)
          const primaries = value.filter((element: JsonValue) => isJsonObject(element) && element['primary'] === true)
          expect(primaries.length).toBeLessThanOrEqual(1)
          expect(new Set(value.map((element: JsonValue) => JSON.stringify(element))).size).toBe(value.length)
        }
      }),
      runs,
    )
  })
})

describe('a PATCH and the requests after it', () => {
  test('the outcome, sent back by PUT, stays the same', () => {
    fc.assert(
      fc.property(stored, fc.array(operation, { minLength: 1, maxLength: 3 }), (before, operations) => {
        const after = attempt(before, operations)
        if (after === undefined) return
        expect(replaceResource(schema, after, readResource(schema, deepFrozen(after)))).toEqual(after)
      }),
      runs,
    )
  })

  test('the same change by PUT has the same outcome', () => {
    fc.assert(
      fc.property(stored, fc.array(operation, { minLength: 1, maxLength: 3 }), (before, operations) => {
        const after = attempt(before, operations)
        if (after === undefined) return
        expect(replaceResource(schema, before, readResource(schema, after))).toEqual(after)
      }),
      runs,
    )
  })

  test('the same operation again changes nothing (RFC 7644 3.5.2.1: a value that exists is not added)', () => {
    fc.assert(
      fc.property(stored, operation, (before, one) => {
        // An operation that finds its element by a part that it changes finds another one the second time.
        const [path = ''] = one['path'] === undefined ? Object.keys(one['value'] ?? {}) : [String(one['path'])]
        const picks = path.includes('[') && !/^remove$/i.test(String(one['op']))
        if (picks && !/\[type .*\]\.(display|country|door)$/.test(path)) return
        const after = attempt(before, [one])
        if (after === undefined) return
        const again = attempt(deepFrozen(after), [one])
        expect(again).toEqual(after)
      }),
      runs,
    )
  })

  test('operations one by one equal operations together', () => {
    fc.assert(
      fc.property(stored, operation, operation, (before, one, two) => {
        const first = attempt(before, [one])
        if (first === undefined) return
        const second = attempt(deepFrozen(first), [two])
        if (second === undefined) return
        expect(attempt(before, [one, two])).toEqual(second)
      }),
      runs,
    )
  })

  test('names exactly the changed attributes', () => {
    fc.assert(
      fc.property(stored, operation, (before, one) => {
        try {
          const resource = applyPatch(schema, before, parsePatch(schema, { Operations: [one] }))
          const changed = changedAttributes(schema, before, resource)
          for (const ref of refs) {
            const same = sorted(readAttribute(before, ref)) === sorted(readAttribute(resource, ref))
            expect(changed.includes(ref)).toBe(!same)
          }
        } catch (error) {
          expect(error).toBeInstanceOf(GatewayError)
        }
      }),
      runs,
    )
  })
})

/** JSON with its keys in order. */
const sorted = (value: JsonValue | undefined): string | undefined =>
  JSON.stringify(value, (_key, part: unknown) =>
    isJsonObject(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part,
  )
