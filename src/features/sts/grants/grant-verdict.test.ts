import { describe, expect, test } from 'vitest'
import type { GrantLimits } from '#config/configuration/token-endpoint.ts'
import { type GrantEndpoint, judgeGrants } from './grant-verdict.ts'
import { type GrantNamespace, readGrant, type TokenGrant } from './token-grant.ts'

const limits: GrantLimits = {
  namespaces: ['team-*', 'shop'],
  namespaceLabels: new Map([['gatehouse.dev/grants', 'yes']]),
  serviceAccounts: ['cart', 'web-*-ro'],
  maxServiceAccounts: 2,
  maxGrants: 2,
  staleSeconds: 300,
}
const endpoints = new Map<string, GrantEndpoint>([
  ['aws', { name: 'aws', clusters: ['k8s'], grants: limits }],
  ['any', { name: 'any', clusters: ['k8s'], grants: { ...limits, namespaces: [], serviceAccounts: [] } }],
  ['far', { name: 'far', clusters: ['other'], grants: limits }],
  ['closed', { name: 'closed', clusters: ['k8s'] }],
])
const labelled: GrantNamespace = { labels: { 'gatehouse.dev/grants': 'yes' }, isEnding: false }

const grant = (more: Partial<TokenGrant> = {}): TokenGrant => ({
  namespace: 'shop',
  name: 'cart',
  created: '2026-01-01T00:00:00Z',
  endpoint: 'aws',
  serviceAccounts: ['cart'],
  problem: undefined,
  ...more,
})
const reasons = (grants: readonly TokenGrant[], namespace: GrantNamespace | undefined = labelled): string[] => {
  const judged = judgeGrants(grants, namespace, endpoints, 'k8s')
  return grants.map((one) => judged.get(one)?.reason ?? '')
}

describe('a grant', () => {
  test.each<[string, Partial<TokenGrant>, string]>([
    ['within all limits', {}, 'Accepted'],
    ['of a namespace by pattern', { namespace: 'team-a' }, 'Accepted'],
    ['of a namespace that only begins like one', { namespace: 'shop-2' }, 'NamespaceNotAllowed'],
    ['of a namespace that only ends like one', { namespace: 'my-team-a' }, 'NamespaceNotAllowed'],
    ['for an account with a pattern in the middle', { serviceAccounts: ['web-a-ro'] }, 'Accepted'],
    ['for an account that is shorter than its pattern', { serviceAccounts: ['web-ro'] }, 'ServiceAccountNotAllowed'],
    ['for one account of another name', { serviceAccounts: ['cart', 'admin'] }, 'ServiceAccountNotAllowed'],
    ['for too many accounts', { serviceAccounts: ['cart', 'web-a-ro', 'web-b-ro'] }, 'TooManyServiceAccounts'],
    ['for any account where all may be named', { endpoint: 'any', serviceAccounts: ['admin'] }, 'Accepted'],
    ['of an endpoint without grants', { endpoint: 'closed' }, 'GrantsNotHonored'],
    ['of an unknown endpoint', { endpoint: 'constructor' }, 'UnknownEndpoint'],
    ['of an endpoint for another cluster', { endpoint: 'far' }, 'OtherCluster'],
    ['that cannot be read', { problem: 'spec is missing' }, 'Invalid'],
  ])('%s: %s', (_, more, reason) => {
    expect(reasons([grant(more)])).toEqual([reason])
  })

  test.each<[string, GrantNamespace | undefined, string]>([
    ['without the label', { labels: {}, isEnding: false }, 'NamespaceNotAllowed'],
    ['with another value', { labels: { 'gatehouse.dev/grants': 'no' }, isEnding: false }, 'NamespaceNotAllowed'],
    ['that is being deleted', { ...labelled, isEnding: true }, 'NamespaceEnds'],
  ])('of a namespace %s is refused', (_, namespace, reason) => {
    expect(reasons([grant()], namespace)).toEqual([reason])
  })

  test('of a namespace that is not there is refused', () => {
    const judged = judgeGrants([grant()], undefined, endpoints, 'k8s')
    expect([...judged.values()].map(({ reason }) => reason)).toEqual(['NamespaceEnds'])
  })

  test('the oldest ones count, by name if they are of one second; refused ones take no place', () => {
    const grants = [
      grant({ name: 'new', created: '2026-01-02T00:00:00Z' }),
      grant({ name: 'b' }),
      grant({ name: 'a' }),
      grant({ name: 'refused', created: '2025-01-01T00:00:00Z', serviceAccounts: ['admin'] }),
      grant({ name: 'elsewhere', created: '2026-01-03T00:00:00Z', endpoint: 'any' }),
    ]
    expect(reasons(grants)).toEqual(['TooManyGrants', 'Accepted', 'Accepted', 'ServiceAccountNotAllowed', 'Accepted'])
  })
})

test.each<[string, unknown]>([
  ['no spec', undefined],
  ['no accounts', { endpoint: 'aws', serviceAccounts: [] }],
  ['too many accounts', { endpoint: 'aws', serviceAccounts: Array.from({ length: 101 }, (_, i) => `a${i}`) }],
  ['a name with a star', { endpoint: 'aws', serviceAccounts: ['*'] }],
  ['a name with a colon', { endpoint: 'aws', serviceAccounts: ['a:b'] }],
  ['a number', { endpoint: 'aws', serviceAccounts: [1] }],
  ['no endpoint', { serviceAccounts: ['cart'] }],
])('an object with %s names nobody', (_, spec) => {
  const metadata = { name: 'x', namespace: 'shop', uid: 'u', resourceVersion: '1' }
  const read = readGrant({ metadata, content: { spec } })
  expect([read.serviceAccounts, read.problem]).toEqual([[], expect.stringContaining('spec.')])
})
