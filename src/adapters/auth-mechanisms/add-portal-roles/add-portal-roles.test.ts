import { expect, test } from 'vitest'
import type { Target } from '#sdk/target/target.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import addPortalRoles from './add-portal-roles.ts'

async function open() {
  const issues = noIssues()
  const init = { extSuffix: '-external', intSuffix: '-internal', k8sTargetName: 'k8s', role2label: 'view=Viewers,' }
  const prepared = addPortalRoles.prepare(fakeParams({}), fakeParams(init), issues, fakeParseContext())
  expect(issueTexts(issues.list)).toEqual([])
  return prepared.create(fakeModuleHost({ targets: { k8s: { objects: {} } as unknown as Target } }))
}

const ada = subject('uid=ada,o=Tremolo', { mail: ['a@x.test'], groups: ['staff', 'k8s-namespace-view-k8s-payroll'] })
const table = [
  { Cluster: 'N/A', Namespace: 'N/A', Name: 'staff' },
  { Cluster: 'k8s', Namespace: 'payroll', Name: 'Viewers' },
]

test('the user gets a table of the groups, at login and when the session is renewed', async () => {
  const mechanism = await open()
  for (const outcome of [
    await mechanism.begin({ request: fakeRequest({}), subject: ada, root: 'o=Tremolo' }),
    await mechanism.renew?.(ada),
  ]) {
    if (outcome?.kind !== 'authenticated') throw new Error('not authenticated')
    const { attributes } = outcome.subject
    expect(attributes.values('portalGroups').map((text) => JSON.parse(text))).toEqual([table])
    expect([attributes.values('mail'), attributes.isClaim('portalGroups')]).toEqual([['a@x.test'], false])
  }
})

test('groups that a token claims stay a claim', async () => {
  const attributes = ada.attributes.clone()
  attributes.setClaim('groups', ['staff'])
  const outcome = await (await open()).renew?.({ ...ada, attributes })
  if (outcome?.kind !== 'authenticated') throw new Error('not authenticated')
  expect(outcome.subject.attributes.isClaim('portalGroups')).toBe(true)
})

test('a login without a user is rejected, with the reason', async () => {
  const attempt = { request: fakeRequest({}), subject: undefined, root: 'o=Tremolo' }
  expect(await (await open()).begin(attempt)).toMatchObject({
    kind: 'rejected',
    reason: expect.stringMatching(/after one/),
  })
})
