import { expect, test } from 'vitest'
import type { Organization } from '#contract/main.ts'
import { draftKey, forgetOthers, keepDraft, readDraft } from './draft.ts'
import { columnsFor, rowsOf } from './grid-rows.ts'
import { matches } from './matching.ts'
import { flatten } from './orgs.ts'
import { iconAddress, safeAddress } from './safe-address.ts'

test('rows have as many items as there are columns, and empty groups are left out', () => {
  const groups = [
    { key: 'a', heading: 'A', items: [1, 2, 3] },
    { key: 'b', heading: 'B', items: [] },
    { key: 'c', items: [4] },
  ]
  expect(rowsOf(groups, 2).map((row) => (row.kind === 'heading' ? row.heading : row.items))).toEqual([
    'A',
    [1, 2],
    [3],
    [4],
  ])
  expect([columnsFor(0, 200, 12), columnsFor(424, 200, 12), columnsFor(900, undefined, 12)]).toEqual([1, 2, 1])
})

test('every word must match, ignoring case and accents', () => {
  expect(matches('', 'anything')).toBe(true)
  expect(matches('ZUGANG tresor', 'Tresor', 'der Zugang')).toBe(true)
  expect(matches('acces', 'Accès au coffre')).toBe(true)
  expect(matches('vault key', 'Access to the vault')).toBe(false)
})

const org = (id: string, showInPortal: boolean, subOrgs: readonly Organization[] = []): Organization => ({
  id,
  name: id.toUpperCase(),
  description: '',
  showInPortal,
  showInRequest: true,
  showInReports: false,
  subOrgs,
})

test('the tree is flat, without a pure root, and without orgs that are not for this use', () => {
  const tree = org('', true, [org('a', true, [org('b', false, [org('c', true)])]), org('d', true)])
  expect(flatten(tree, 'showInPortal').map(({ id, depth, path }) => [id, depth, path.join('/')])).toEqual([
    ['a', 0, 'A'],
    ['c', 1, 'A/C'],
    ['d', 0, 'D'],
  ])
  expect(flatten(tree, 'showInReports')).toEqual([])
})

test('D18: an address that runs code is rejected', () => {
  const base = 'https://portal.example.com/portal/'
  expect(safeAddress('https://wiki.example.com/', base)).toBe('https://wiki.example.com/')
  expect(safeAddress('/wiki', base)).toBe('https://portal.example.com/wiki')
  const hostile = ['javascript:alert(1)', ' JaVaScRiPt:alert(1)', 'data:text/html,x', 'vbscript:x', 'http://[']
  expect(hostile.map((one) => safeAddress(one, base))).toEqual(hostile.map(() => undefined))
  expect(iconAddress('')).toBe(undefined)
  expect(iconAddress('"><script>')).toBe(undefined)
  expect(iconAddress('iVBORw0KGgo=')).toBe('data:image/png;base64,iVBORw0KGgo=')
})

test('an unreadable draft counts as absent', () => {
  expect(readDraft({ getItem: () => '{"a":1}' }, 'k', {})).toEqual({ a: 1 })
  expect(readDraft({ getItem: () => '{' }, 'k', 'initial')).toBe('initial')
  expect(readDraft({ getItem: () => null }, 'k', 'initial')).toBe('initial')
})

test('a draft of an older version is completed, or counts as absent', () => {
  const kept = (value: unknown) => ({ getItem: () => JSON.stringify(value) })
  expect(readDraft(kept({ a: 'typed' }), 'k', { a: '', b: 'new' })).toEqual({ a: 'typed', b: 'new' })
  expect(readDraft(kept({ a: 1 }), 'k', 'text')).toBe('text')
  expect(readDraft(kept({ length: 1 }), 'k', [])).toEqual([])
  expect(readDraft(kept([]), 'k', { a: '' })).toEqual({ a: '' })
  expect(readDraft(kept(null), 'k', { a: '' })).toEqual({ a: '' })
})

test("drafts of other users are removed, and the user's own are not, whatever the logins are", () => {
  const stored = new Map<string, string>([['gatehouse.language', 'de']])
  const storage = {
    get length() {
      return stored.size
    },
    key: (i: number) => [...stored.keys()][i] ?? null,
    setItem: (key: string, value: string) => void stored.set(key, value),
    removeItem: (key: string) => void stored.delete(key),
  }
  for (const login of ['ada', 'ada.b', 'ada/profile', '', 'grace'])
    keepDraft(storage, draftKey(login, 'profile'), login)
  forgetOthers(storage, 'ada')
  expect([...stored.keys()]).toEqual(['gatehouse.language', draftKey('ada', 'profile')])
})

test('a tab without room for a draft continues', () => {
  const full = {
    setItem: () => {
      throw new DOMException('full', 'QuotaExceededError')
    },
  }
  expect(() => keepDraft(full, 'k', 'typed')).not.toThrow()
})
