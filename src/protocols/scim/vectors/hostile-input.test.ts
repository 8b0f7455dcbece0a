import { describe, expect, test, vi } from 'vitest'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { evaluateFilter } from '#protocols/scim/filter/evaluate-filter.ts'
import { parseFilter } from '#protocols/scim/filter/parse-filter.ts'
import { applyPatch } from '#protocols/scim/patch/apply-patch.ts'
import { memberChange } from '#protocols/scim/patch/member-change.ts'
import { maxOperations, parsePatch } from '#protocols/scim/patch/parse-patch.ts'
import { parseProjection } from '#protocols/scim/projection.ts'
import { clientValues, readResource } from '#protocols/scim/read-resource.ts'
import { ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { attribute } from '#protocols/scim/schema/schema.ts'
import { enterpriseUserSchema, groupSchema, userSchema } from '#protocols/scim/schema/standard-schemas.ts'

vi.setConfig({ testTimeout: 30_000 })

const user = new ResourceSchema(userSchema, [enterpriseUserSchema])
const group = new ResourceSchema(groupSchema)
const many = { ...clientValues, maxValues: 200_000 }
const large = 100_000

/**
 * The result, or the keyword of its refusal. Slower machines get a margin; anything quadratic takes minutes. The time is that
 * of the CPU, since a busy machine may do other work meanwhile.
 */
function timed<T>(work: () => T, limit = 5000): T | string {
  const start = process.cpuUsage()
  try {
    return work()
  } catch (error) {
    if (error instanceof Error && 'keyword' in error && 'status' in error) return `${error.status} ${error.keyword}`
    throw error
  } finally {
    const { user, system } = process.cpuUsage(start)
    expect((user + system) / 1000).toBeLessThan(limit)
  }
}

const members = (count: number, from = 0): JsonObject[] =>
  Array.from({ length: count }, (_, i) => ({ value: `user-${i + from}`, display: `User ${i + from}` }))

const patch = (schema: ResourceSchema, before: JsonObject, Operations: JsonValue) => () =>
  applyPatch(schema, before, parsePatch(schema, { Operations }, many), many)

describe('the cost of long lists is linear', () => {
  const crowd = { displayName: 'G', members: members(large) }

  test('100k members in one add', () => {
    const after = timed(patch(group, { displayName: 'G' }, [{ op: 'add', path: 'members', value: members(large) }]))
    expect(after).toMatchObject({ members: { length: large } })
  })

  test('100k members, all existing', () => {
    const after = timed(patch(group, crowd, [{ op: 'add', path: 'members', value: members(large) }]))
    expect(after).toEqual(crowd)
  })

  test('100k members replaced, by others and by themselves', () => {
    const value = members(large, 50_000)
    const after = timed(patch(group, crowd, [{ op: 'replace', path: 'members', value }]))
    expect(after).toEqual({ displayName: 'G', members: value })
  })

  test('100k members removed by value', () => {
    const value = members(large - 1).map(({ value: id }) => ({ value: id ?? '' }))
    const after = timed(patch(group, crowd, [{ op: 'remove', path: 'members', value }]))
    expect(after).toMatchObject({ members: [{ value: `user-${large - 1}` }] })
  })

  test('100k members in a body, half of them twice', () => {
    const body = { displayName: 'G', members: [...members(large / 2), ...members(large / 2)] }
    expect(timed(() => readResource(group, body, many))).toMatchObject({ members: { length: large / 2 } })
  })

  test('100k members as sets, with the maximum number of operations', () => {
    const operations = Array.from({ length: maxOperations }, (_, i) => ({
      op: i % 2 === 0 ? 'replace' : 'remove',
      path: 'members',
      ...(i % 2 === 0 ? { value: members(100, i) } : {}),
    }))
    const parsed = parsePatch(group, { Operations: operations }, many)
    expect(timed(() => memberChange(parsed, crowd.members, ({ value }) => value))).toMatchObject({
      add: { size: 0 },
      remove: { size: large },
    })
  })

  test('repeated filters over every member are rejected', () => {
    const operations = Array.from({ length: maxOperations }, (_, i) => ({
      op: 'remove',
      path: `members[display eq "${i}"]`,
    }))
    const parsed = parsePatch(group, { Operations: operations }, many)
    expect(timed(() => memberChange(parsed, crowd.members, ({ value }) => value))).toBe('400 invalidValue')
    expect(timed(patch(group, crowd, operations))).toBe('400 invalidValue')
  })

  test('values of as many shapes as possible', () => {
    const names = Array.from({ length: 12 }, (_, i) => `part${i}`)
    const shapes = new ResourceSchema({
      ...groupSchema,
      attributes: [
        attribute('displayName', ''),
        attribute('things', '', {
          type: 'complex',
          multiValued: true,
          subAttributes: names.map((name) => attribute(name, '')),
        }),
      ],
    })
    const value = Array.from({ length: 20_000 }, (_, i) =>
      Object.fromEntries([
        ['part0', `${i}`],
        ...names.slice(1).flatMap((name, bit) => ((i >> bit) & 1 ? [[name, 'x']] : [])),
      ]),
    )
    const outcome = timed(patch(shapes, {}, [{ op: 'add', path: 'things', value }]))
    expect(outcome).toBe('400 invalidValue')
    const few = value.slice(0, 500)
    expect(timed(patch(shapes, {}, [{ op: 'add', path: 'things', value: few }]))).toMatchObject({
      things: { length: 500 },
    })
  })

  test('more values than allowed', () => {
    const operations = [
      { op: 'add', path: 'emails', value: Array.from({ length: 501 }, (_, i) => ({ value: `${i}` })) },
    ]
    expect(timed(() => parsePatch(user, { Operations: operations }))).toBe('400 invalidValue')
    const one = Array.from({ length: 502 }, (_, i) => ({ op: 'add', path: 'emails', value: [{ value: `${i}` }] }))
    expect(timed(() => applyPatch(user, { userName: 'b' }, parsePatch(user, { Operations: one })))).toBe(
      '400 invalidValue',
    )
  })

  test('the maximum number of operations, each with a filter', () => {
    const operations = Array.from({ length: maxOperations }, (_, i) => ({
      op: 'add',
      path: `emails[type eq "t${i % 400}"].value`,
      value: `v${i}`,
    }))
    const after = timed(() => applyPatch(user, { userName: 'b' }, parsePatch(user, { Operations: operations })))
    expect(after).toMatchObject({ emails: { length: 400 } })
  })
})

describe('deep and long input', () => {
  const deep = (depth: number): JsonValue => JSON.parse(`${'['.repeat(depth)}1${']'.repeat(depth)}`)
  const deepObject = (name: string, depth: number): JsonValue =>
    JSON.parse(`${`{"${name}":`.repeat(depth)}1${'}'.repeat(depth)}`)
  const tenMegabytes = 'x'.repeat(10 * 1024 * 1024)

  test.each<[string, JsonValue]>([
    ['a list in a list', deep(5000)],
    ['an object in an object', deepObject('value', 5000)],
    ['an object in an object, as text', `${'{"value":'.repeat(5000)}1${'}'.repeat(5000)}`],
  ])('%s is rejected or ignored', (_name, bomb) => {
    for (const path of ['title', 'emails', 'name', 'manager', 'active', 'emails[type eq "work"]']) {
      const outcome = timed(patch(user, { userName: 'b' }, [{ op: 'add', path, value: bomb }]))
      if (typeof outcome === 'string') expect(outcome).toBe('400 invalidValue')
    }
    expect(timed(() => readResource(user, { userName: 'b', unknown: bomb }))).toEqual({ userName: 'b' })
    expect(timed(() => readResource(user, { userName: 'b', emails: [{ value: 'v', unknown: bomb }] }))).toMatchObject({
      userName: 'b',
    })
  })

  test('a text of 10 MB in every place', () => {
    const before = { userName: 'b' }
    const outcomes = [
      timed(patch(user, before, [{ op: 'add', path: tenMegabytes, value: 'x' }])),
      timed(patch(user, before, [{ op: tenMegabytes, path: 'title', value: 'x' }])),
      timed(patch(user, before, [{ op: 'add', path: 'active', value: tenMegabytes }])),
      timed(patch(user, before, [{ op: 'add', path: `emails[type eq "${tenMegabytes}"].value`, value: 'x' }])),
      timed(patch(user, before, [{ op: 'add', path: 'title', value: `${tenMegabytes}\ud800` }])),
      timed(patch(user, before, [{ op: 'add', value: { [tenMegabytes]: 1 } }])),
      timed(() => parseFilter(tenMegabytes, user)),
      timed(() => parseFilter(`userName eq "${tenMegabytes}"`, user)),
      timed(() => parseProjection(user, tenMegabytes, null)),
    ]
    expect(outcomes).toEqual([
      '400 invalidPath',
      '400 invalidSyntax',
      '400 invalidValue',
      '400 invalidPath',
      '400 invalidValue',
      '400 invalidPath',
      '400 invalidFilter',
      '400 invalidFilter',
      '400 invalidValue',
    ])
    expect(timed(patch(user, before, [{ op: 'add', path: 'title', value: tenMegabytes }]))).toMatchObject({
      title: tenMegabytes,
    })
    expect(timed(patch(user, before, [{ op: 'add', path: 'roles', value: `{${tenMegabytes}` }]))).toMatchObject({
      roles: [{ value: `{${tenMegabytes}` }],
    })
  })

  test('20k parentheses, brackets, quotes and nots', () => {
    for (const text of ['(', '[', '"', 'not (', 'emails[', ')', 'a and ', '\\']) {
      expect(timed(() => parseFilter(text.repeat(20_000), user))).toBe('400 invalidFilter')
      expect(timed(() => parseFilter(text.repeat(4096 / text.length), user))).toBe('400 invalidFilter')
    }
  })

  test('the longest filters with many branches are evaluated quickly (no normal form that explodes)', () => {
    const clause = '(userName eq "a" or title eq "b")'
    const text = Array.from({ length: 100 }, () => clause).join(' and ')
    const filter = parseFilter(text, user)
    expect(timed(() => evaluateFilter(filter, { userName: 'x', title: 'b' }))).toBe(true)
    expect(timed(() => evaluateFilter(parseFilter(`not (${text})`, user), { userName: 'x' }))).toBe(true)
  })

  test('a filter over 100k resources', () => {
    const filter = parseFilter('emails[type eq "work"].value co "user-9" and active eq true and not (title pr)', user)
    const people = Array.from({ length: large }, (_, i) => ({
      active: i % 2 === 0,
      emails: [{ value: `User-${i}@x`, type: 'work' }],
    }))
    const found = timed(() => people.filter((one) => evaluateFilter(filter, one)).length)
    expect(found).toBe(5555)
  })

  test('names of the JavaScript prototype are never attributes', () => {
    const names = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty']
    for (const name of names) {
      const value = JSON.parse(`{"${name}": {"polluted": 1, "${name}": {"polluted": 1}}, "title": "t"}`)
      expect(timed(patch(user, { userName: 'b' }, [{ op: 'add', value }]))).toEqual({ userName: 'b', title: 't' })
      expect(readResource(user, { ...value, userName: 'b', name: value, emails: [value] })).toEqual({
        userName: 'b',
        title: 't',
      })
      for (const path of [name, `${name}.polluted`, `emails.${name}`, `${enterpriseUserSchema.id}:${name}`]) {
        expect(timed(patch(user, { userName: 'b' }, [{ op: 'add', path, value: 1 }]))).toBe('400 invalidPath')
      }
      expect(timed(() => parseFilter(`${name} pr`, user))).toBe('400 invalidFilter')
      expect(parseProjection(user, name, null)?.apply({ id: 'u', userName: 'b' })).toEqual({ id: 'u' })
    }
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
  })
})
