import { describe, expect, test } from 'vitest'
import type { JsonValue } from '#kernel/json.ts'
import { memberChange, memberReferences, needsPresentMembers } from '#protocols/scim/patch/member-change.ts'
import { parsePatch } from '#protocols/scim/patch/parse-patch.ts'
import { ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { groupSchema } from '#protocols/scim/schema/standard-schemas.ts'

const schema = new ResourceSchema(groupSchema)
const present = [
  { value: 'a', type: 'User' },
  { value: 'b', type: 'User' },
]

function change(operations: JsonValue) {
  const parsed = parsePatch(schema, { Operations: operations })
  const needed = needsPresentMembers(parsed)
  const { add, remove } = memberChange(parsed, needed ? present : [], ({ value }) => value)
  return { needed, add: [...add], remove: [...remove] }
}

describe('without reading the group', () => {
  test('add and remove by value, in every form', () => {
    expect(
      change([
        {
          op: 'Add',
          path: 'members',
          value: [
            { $ref: null, value: 'c' },
            { value: 'd', display: 'D' },
          ],
        },
        { op: 'remove', path: 'members[value eq "a"]' },
        { op: 'Remove', path: 'members', value: [{ value: 'b' }] },
        { op: 'remove', path: 'members[value eq "x" or value eq "y"]' },
      ]),
    ).toEqual({ needed: false, add: ['c', 'd'], remove: ['a', 'b', 'x', 'y'] })
  })

  test('the last operation wins', () => {
    expect(
      change([
        { op: 'add', path: 'members', value: [{ value: 'c' }] },
        { op: 'remove', path: 'members[value eq "c"]' },
        { op: 'remove', path: 'members[value eq "a"]' },
        { op: 'add', value: { members: [{ value: 'a' }] } },
      ]),
    ).toEqual({ needed: false, add: ['a'], remove: ['c'] })
  })
})

describe('with the current members', () => {
  test('replace, also with nothing', () => {
    expect(change([{ op: 'replace', path: 'members', value: [{ value: 'b' }, { value: 'c' }] }])).toEqual({
      needed: true,
      add: ['b', 'c'],
      remove: ['a'],
    })
    expect(change([{ op: 'replace', path: 'members', value: [] }])).toEqual({
      needed: true,
      add: [],
      remove: ['a', 'b'],
    })
  })

  test('remove all, or by another filter', () => {
    expect(change([{ op: 'remove', path: 'members' }])).toMatchObject({ needed: true, remove: ['a', 'b'] })
    expect(change([{ op: 'remove', path: 'members[value sw "a"]' }])).toMatchObject({ needed: true, remove: ['a'] })
  })

  test('remove all includes members added before it', () => {
    const operations = [
      { op: 'add', path: 'members', value: [{ value: 'c' }] },
      { op: 'remove', path: 'members' },
    ]
    expect(change(operations)).toEqual({ needed: true, add: [], remove: ['a', 'b', 'c'] })
  })
})

test.each<[string, JsonValue]>([
  ['invalidValue', [{ op: 'add', path: 'members', value: [{ display: 'no value' }] }]],
  ['invalidValue', [{ op: 'add', path: 'members', value: [{ value: 'g', type: 'Device' }] }]],
  ['invalidValue', [{ op: 'add', path: 'members', value: [{ value: 'g', type: 'User', $ref: '../Groups/g' }] }]],
  ['invalidValue', [{ op: 'remove', path: 'members', value: [{ value: 'g', type: 'Group', $ref: 'Users/g' }] }]],
  ['mutability', [{ op: 'add', path: 'members[value eq "a"].display', value: 'x' }]],
  ['mutability', [{ op: 'remove', path: 'members[value eq "a"].display' }]],
])('%s: %j', (keyword, operations) => {
  expect(() => change(operations)).toThrow(expect.objectContaining({ keyword }))
})

test.each([
  [{ value: '1' }, undefined],
  [{ value: '1', type: 'group' }, 'Group'],
  [{ value: '1', type: 'User' }, 'User'],
  [{ value: '1', $ref: '../Groups/1' }, 'Group'],
  [{ value: '1', $ref: 'https://x.test/scim/v2/Groups/1' }, 'Group'],
  [{ value: '1', $ref: '/scim/users/1/' }, 'User'],
  [{ value: '1', $ref: '../Groups/1', type: 'Group' }, 'Group'],
  [{ value: '1', $ref: 'https://groups.test/1' }, undefined],
  [{ value: '1', $ref: null }, undefined],
])('%j is a %s', (element, type) => {
  const operations = parsePatch(schema, { Operations: [{ op: 'add', path: 'members', value: [element] }] })
  expect(memberReferences(operations)).toEqual([{ value: '1', type }])
})

test('a user and a group with one id are two members', () => {
  const operations = parsePatch(schema, {
    Operations: [
      {
        op: 'add',
        path: 'members',
        value: [
          { value: '1', type: 'User' },
          { value: '1', $ref: '../Groups/1' },
        ],
      },
      { op: 'remove', path: 'members', value: [{ value: '1', type: 'Group' }] },
    ],
  })
  const { add, remove } = memberChange(operations, [], ({ value, type }) => `${type} ${value}`)
  expect([[...add], [...remove]]).toEqual([['User 1'], ['Group 1']])
})
