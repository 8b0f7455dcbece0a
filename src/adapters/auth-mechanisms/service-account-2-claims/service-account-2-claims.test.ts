import { describe, expect, it } from 'vitest'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import serviceAccount2Claims from './service-account-2-claims.ts'

const prepare = (cluster: string, issues = noIssues()) =>
  serviceAccount2Claims.prepare(fakeParams({ cluster }), fakeParams({}), issues, fakeParseContext())

async function outcomeOf(attributes: Readonly<Record<string, readonly string[]>> | undefined) {
  const mechanism = await prepare('east').create(fakeModuleHost())
  const caller = attributes === undefined ? undefined : subject('sub=x,o=Tremolo', attributes)
  return mechanism.begin({ request: fakeRequest({}), subject: caller, root: 'o=Tremolo' })
}

describe('auth.ServiceAccount2Claims', () => {
  it('adds token_sub, cluster, namespace and saname, and keeps the rest', async () => {
    const outcome = await outcomeOf({ username: ['system:serviceaccount:shop:cart'], 'pod-name': ['cart-0'] })
    if (outcome.kind !== 'authenticated') throw new Error(outcome.kind)
    expect(outcome.subject.attributes.toObject()).toEqual({
      username: ['system:serviceaccount:shop:cart'],
      'pod-name': ['cart-0'],
      token_sub: ['east:shop:cart'],
      cluster: ['east'],
      namespace: ['shop'],
      saname: ['cart'],
    })
  })

  it.each([
    ['nobody', undefined],
    ['a person', { username: ['jane'] }],
    ['C2: a look-alike of the same length', { username: ['xxxxxxxxxxxxxxxxxxxxxxkube-system:admin'] }],
    ['C2: one with a part more', { username: ['system:serviceaccount:shop:cart:x'] }],
    ['two names', { username: ['system:serviceaccount:shop:cart', 'system:serviceaccount:kube-system:admin'] }],
    ['a claim that only looks so', { sub: ['system:serviceaccount:shop:cart'] }],
  ])('refuses %s', async (_, attributes) => {
    expect((await outcomeOf(attributes)).kind).toBe('rejected')
  })

  it('refuses a cluster that would make subjects ambiguous', () => {
    const issues = noIssues()
    prepare('east:shop', issues)
    expect(issueTexts(issues.list)).toEqual([
      'error params.cluster.0: "cluster": "east:shop" is not allowed in a subject',
    ])
  })
})
