import { expect, test } from 'vitest'
import type { PortalLink } from '#features/portal/contract/main.ts'
import type { TimedAccess } from '#features/portal/contract/main-access.ts'
import type { RequestSummary } from '#features/portal/contract/main-requests.ts'
import { endingSoon, recentTrouble } from './attention-items.ts'
import { groupLinks } from './link-groups.ts'

const link = (name: string, org: string): PortalLink => ({ name, label: `The ${name}`, org, url: '/', icon: '' })
const orgs = [
  { id: 'a', name: 'A', description: '', depth: 0, above: [], path: ['A'] },
  { id: 'b', name: 'B', description: '', depth: 1, above: ['a'], path: ['A', 'B'] },
]
const links = [link('wiki', 'b'), link('mail', 'a'), link('lost', 'gone')]
const wanted = { query: '', org: '', elsewhere: 'Other' }

test('links are below their orgs, in the order of the tree; the others come last', () => {
  const groups = groupLinks(links, orgs, wanted)
  expect(groups.map(({ heading, items }) => [heading, items.map(({ name }) => name)])).toEqual([
    ['A', ['mail']],
    ['A › B', ['wiki']],
    ['Other', ['lost']],
  ])
})

test('one org, or some words', () => {
  expect(groupLinks(links, orgs, { ...wanted, org: 'b' }).flatMap(({ items }) => items)).toEqual([links[0]])
  expect(groupLinks(links, orgs, { ...wanted, query: 'MAIL' }).flatMap(({ items }) => items)).toEqual([links[1]])
})

test('shows access that expires soon, the soonest first, and not expired access', () => {
  const now = Date.UTC(2026, 0, 10)
  const day = (n: number): TimedAccess => ({
    id: String(n),
    target: 't',
    kind: 'group',
    name: 'g',
    granted: new Date(0).toISOString(),
    expires: new Date(now + n * 86_400_000).toISOString(),
    mayGiveBack: true,
  })
  expect(endingSoon([day(20), day(5), day(-1), day(1)], now).map(({ id }) => id)).toEqual(['1', '5'])
})

test('old failures and own cancellations are not shown', () => {
  const ended = (id: string, updated: string, by?: string) =>
    ({ id, updated, ...(by === undefined ? {} : { cancel: { by } }) }) as RequestSummary
  const requests = [
    ended('new', '2026-01-31T00:00:00Z'),
    ended('old', '2025-06-01T00:00:00Z'),
    ended('own', '2026-01-31T00:00:00Z', 'Ada'),
    ended('stopped', '2026-01-31T00:00:00Z', 'linus'),
  ]
  const shown = recentTrouble(requests, 'ada', Date.UTC(2026, 1, 1))
  expect(shown.map(({ id }) => id)).toEqual(['new', 'stopped'])
})
