import { expect, test } from 'vitest'
import { type PaletteGroup, resultsFor, stepFrom } from './palette-items.ts'

const group = (title: PaletteGroup['title'], labels: readonly string[], isFound = false): PaletteGroup => ({
  title,
  isFound,
  items: labels.map((label) => ({ key: label, label, icon: 'dot', open: () => undefined })),
})
const shown = (query: string, ...groups: readonly PaletteGroup[]): string[] =>
  resultsFor(query, groups).map(({ title, items }) => `${title}: ${items.map(({ label }) => label).join(', ')}`)

test('the exact match is first, in its group and among the groups', () => {
  const pages = group('palette.pages', ['My mail settings', 'Home'])
  const links = group('palette.links', ['Webmail', 'Mailing lists', 'Mail'])
  expect(shown('mail', pages, links)).toEqual([
    'palette.links: Mail, Mailing lists, Webmail',
    'palette.pages: My mail settings',
  ])
})

test('without a query the order stays, and empty groups are left out', () => {
  expect(shown(' ', group('palette.pages', ['Home', 'Approvals']), group('palette.links', []))).toEqual([
    'palette.pages: Home, Approvals',
  ])
})

test('what the gateway found is shown even if the label does not match', () => {
  expect(shown('vault', group('page.request', ['Access to secrets'], true))).toEqual([
    'page.request: Access to secrets',
  ])
  expect(shown('vault', group('palette.links', ['Access to secrets']))).toEqual([])
})

test('a group has at most six results', () => {
  const many = group(
    'palette.links',
    Array.from({ length: 50 }, (_, i) => `Link ${i}`),
  )
  expect(resultsFor('link', [many])[0]?.items).toHaveLength(6)
})

test('arrow keys go round', () => {
  expect([stepFrom(0, -1, 3), stepFrom(2, 1, 3), stepFrom(0, 1, 0)]).toEqual([2, 0, 0])
})
