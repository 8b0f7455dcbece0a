import { expect, test } from 'vitest'
import type { Organization } from '#features/portal/contract/main.ts'
import { draftKey, forgetOthers, keepDraft, readDraft } from './draft.ts'
import { columnsFor, rowsOf } from './grid-rows.ts'
import { matches, sortByMatch } from './matching.ts'
import { flatten, visibleOrgs } from './orgs.ts'
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

test('the exact match comes first, then prefixes, word starts and the rest', () => {
  const labels = ['My coffer 19', 'Offer 191', 'The 19th offer', 'Öffer 19']
  const sorted = (query: string) =>
    sortByMatch(
      query,
      labels.map((label) => ({ label })),
    ).map(({ label }) => label)
  expect(sorted(' offer 19')).toEqual(['Öffer 19', 'Offer 191', 'The 19th offer', 'My coffer 19'])
  expect(sorted('')).toEqual(labels)
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

test('a closed org hides those below it, except those above the chosen one', () => {
  const tree = org('', true, [org('a', true, [org('b', true, [org('c', true)])]), org('d', true)])
  const orgs = flatten(tree, 'showInPortal')
  const seen = (closed: readonly string[], chosen: string): string =>
    visibleOrgs(orgs, new Set(closed), chosen)
      .map(({ id, isParent, isClosed }) => id + (isParent ? (isClosed ? '+' : '-') : ''))
      .join(' ')
  expect(seen([], '')).toBe('a- b- c d')
  expect(seen(['a', 'd', 'gone'], '')).toBe('a+ d')
  expect(seen(['b'], 'd')).toBe('a- b+ d')
  expect(seen(['a', 'b'], 'c')).toBe('a- b- c d')
  const withoutParent = orgs.filter(({ id }) => id !== 'a')
  expect(visibleOrgs(withoutParent, new Set(['a']), '').map(({ id }) => id)).toEqual(['b', 'c', 'd'])
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
  expect(iconAddress('data:image/svg+xml;base64,PHN2Zy8+')).toBe('data:image/svg+xml;base64,PHN2Zy8+')
  expect(iconAddress('data:text/html;base64,PHN2Zy8+')).toBe(undefined)
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
