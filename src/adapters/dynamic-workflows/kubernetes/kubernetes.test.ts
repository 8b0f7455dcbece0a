import { expect, test } from 'vitest'
import kubernetesClusters from '#adapters/value-sources/kubernetes-clusters/kubernetes-clusters.ts'
import type { ClusterApi } from '#sdk/target/kubernetes-cluster.ts'
import type { Target, TargetSource } from '#sdk/target/target.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import { kubernetesObjects, listClusterApproverGroups, listClusters } from './kubernetes.ts'

async function namespacesOf(groups: string[], more: ParamValues = {}): Promise<unknown> {
  const issues = noIssues()
  const given = { cluster: 'k8s', groupsAttribute: 'groups', groupPrefix: 'approvers-', ...more }
  const prepared = listClusterApproverGroups.prepare(fakeParams(given), issues, fakeParseContext())
  expect(issueTexts(issues.list)).toEqual([])
  const source = await prepared.create(fakeModuleHost())
  return (await source.parameterSets(subject('uid=ann,o=x', { groups }))).map((set) => set['nameSpace'])
}

test('approvers get a row for each of their namespaces', async () => {
  const groups = ['approvers-k8s-a', 'approvers-k8s-b-c', 'approvers-k8s-', 'approvers-k8s2-d', 'users']
  expect(await namespacesOf(groups)).toEqual(['a', 'b-c'])
  expect(await namespacesOf(['approvers-k8s-a-x', 'approvers-k8s-b'], { groupSuffix: '-x' })).toEqual(['a'])
  expect(await namespacesOf(['cn=approvers-k8s-a,o=x', 'no name'], { groupsAreDN: 'true' })).toEqual(['a'])
  expect(await namespacesOf([])).toEqual([])
})

const clusters: Readonly<Record<string, Target>> = {
  people: new MemoryTarget(),
  k8s: Object.assign(new MemoryTarget(), { objects: {} as ClusterApi }),
  west: Object.assign(new MemoryTarget(), { objects: {} as ClusterApi, label: 'West coast' }),
}
const targets: TargetSource = {
  get: (name) => clusters[name] ?? new MemoryTarget(),
  names: () => Object.keys(clusters),
}

test('all clusters are rows and choices, and other targets are not', async () => {
  const host = { ...fakeModuleHost(), targets }
  const ann = subject('uid=ann,o=x')
  const rows = await listClusters.prepare(fakeParams({}), noIssues(), fakeParseContext()).create(host)
  expect(await rows.parameterSets(ann)).toEqual([
    { cluster: 'k8s', clusterlabel: 'k8s' },
    { cluster: 'west', clusterlabel: 'West coast' },
  ])
  const choices = await kubernetesClusters.prepare(fakeParams({}), noIssues(), fakeParseContext()).create(host)
  expect(await choices.list({ search: 'coast', limit: 10, subject: ann })).toEqual([
    { name: 'West coast', value: 'west' },
  ])
  expect(await choices.check('k8s', ann)).toBeUndefined()
  expect(await choices.check('people', ann)).toBe('is not the name of a cluster')
})

test('each object that the labels select is a row with its annotations and labels, up to a limit', async () => {
  const asked: unknown[] = []
  const content = {
    metadata: {
      annotations: { 'acme.test/owner': 'eve', name: 'another', constructor: 'x', approval_id: '7' },
      labels: { 'cost-center': '42' },
    },
  }
  const object = (name: string) => ({ metadata: { name, uid: name, resourceVersion: '1' }, content })
  const list = async (...call: unknown[]) => {
    asked.push(call)
    return [object('blue'), object('kube-system')]
  }
  const cluster = Object.assign(new MemoryTarget(), { objects: { list } as unknown as ClusterApi })
  const given = {
    target: 'k8s',
    kind: '/api/v1/namespaces?labelSelector=acme.test%2Fopen%3Dyes',
    filter: ['kube-system'],
  }
  const prepared = kubernetesObjects.prepare(fakeParams(given), noIssues(), fakeParseContext())
  const rows = await prepared.create({ ...fakeModuleHost(), targets: { get: () => cluster } })
  const expected = { name: 'blue', 'acme_test/owner': 'eve', cost_center: '42' }
  expect(await rows.parameterSets(subject('uid=ann,o=x'))).toMatchObject([expected])
  const resource = { group: '', version: 'v1', plural: 'namespaces' }
  expect(asked).toEqual([[resource, 1000, { labels: 'acme.test/open=yes' }]])
})

test.each([
  'namespaces',
  '/api/v1',
  '/api/v1/namespaces/blue/pods/one',
  '/api/v1/namespaces?watch=true',
  '/api/v1/namespaces?labelSelector=a&limit=1',
])('"%s" is not the path of a list', (kind) => {
  const issues = noIssues()
  kubernetesObjects.prepare(fakeParams({ target: 'k8s', kind }), issues, fakeParseContext())
  expect(issueTexts(issues.list)).toEqual([
    expect.stringMatching(/^error params\.kind\.0: .*(is not the path|not supported)/),
  ])
})
