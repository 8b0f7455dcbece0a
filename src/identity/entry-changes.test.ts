import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { groupChanges, missingNames, userChanges, valueChanges } from '#identity/entry-changes.ts'

const short = (changes: ReturnType<typeof valueChanges>): string[] =>
  changes.map(({ action, attribute, value }) => `${action} ${attribute} ${value}`)

const user = (mail: readonly string[], groups: readonly string[] = []) => ({
  userID: 'ada',
  attributes: Attributes.from({ mail }),
  groups,
})

test('values are added and deleted, and a single value is replaced', () => {
  expect(short(valueChanges('mail', ['a'], ['b']))).toEqual(['replace mail b'])
  expect(short(valueChanges('mail', ['a', 'b'], ['b', 'c', 'c']))).toEqual(['add mail c', 'delete mail a'])
  expect(short(valueChanges('mail', ['a'], ['b'], { addOnly: true }))).toEqual(['add mail b'])
  expect(short(valueChanges('mail', ['a'], ['A']))).toEqual(['replace mail A'])
})

test('another order is a change only where order counts', () => {
  expect(valueChanges('mail', ['a', 'b'], ['b', 'a'])).toEqual([])
  expect(short(valueChanges('mail', ['a', 'b'], ['b', 'a'], { ordered: true }))).toEqual([
    'replace mail b',
    'replace mail a',
  ])
  expect(valueChanges('mail', ['a', 'b'], ['b', 'a'], { ordered: true, addOnly: true })).toEqual([])
})

test('a new user adds its entry, and only the listed attributes', () => {
  const changes = userChanges(undefined, user(['a'], ['crew']), { attributes: ['mail'] })
  expect(short(changes)).toEqual(['add userID ada', 'add mail a', 'add groups crew'])
  expect(short(userChanges(undefined, user(['a']), { attributes: [] }))).toEqual(['add userID ada'])
})

test('group names are compared exactly, or without regard to letter case', () => {
  const [before, after] = [user([], ['Crew']), user([], ['crew', 'new', 'NEW'])]
  expect(short(userChanges(before, after, { attributes: [], foldGroups: true }))).toEqual(['add groups new'])
  expect(short(userChanges(before, user([], ['crew']), { attributes: [] }))).toEqual([
    'add groups crew',
    'delete groups Crew',
  ])
  expect(short(userChanges(before, user([]), { attributes: [], addOnly: true }))).toEqual([])
  expect(missingNames(['a'], ['A', 'b', 'B'])).toEqual(['b'])
})

test('a group whose attributes are unknown changes its name only', () => {
  const group = { id: '1', name: 'crew', members: [] }
  expect(short(groupChanges(group, 'team', [['description', ['x']]]))).toEqual(['replace name team'])
  const described = { ...group, description: 'old' }
  expect(short(groupChanges(described, 'crew', [['description', ['new']]]))).toEqual(['replace description new'])
})

describe('userChanges', () => {
  const values = fc.uniqueArray(fc.constantFrom('a', 'b', 'c'), { maxLength: 3 })
  const users = fc.record({ mail: values, note: values, groups: values }).map(({ mail, note, groups }) => ({
    userID: 'u',
    attributes: Attributes.from({ mail, note }),
    groups,
  }))
  const attributes = ['mail', 'note']

  test('is empty exactly when writing would change nothing', () => {
    fc.assert(
      fc.property(users, users, (found, wanted) => {
        const equal =
          attributes.every((name) => found.attributes.values(name).join() === wanted.attributes.values(name).join()) &&
          found.groups.toSorted().join() === wanted.groups.toSorted().join()
        expect(userChanges(found, wanted, { attributes, ordered: true }).length === 0).toBe(equal)
      }),
    )
  })

  test('addOnly never takes anything away', () => {
    fc.assert(
      fc.property(users, users, (found, wanted) => {
        const changes = userChanges(found, wanted, { attributes, addOnly: true })
        expect(changes.every(({ action }) => action === 'add')).toBe(true)
      }),
    )
  })
})
