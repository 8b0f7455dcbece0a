import { expect, test } from 'vitest'
import { fakeParams, fakeParseContext } from '#testing/modules/fake-parse.ts'
import { clusterGroups, readClusterGroupNames } from './cluster-group-parameters.ts'

const clusters = [
  { name: 'k8s', label: 'Control plane' },
  { name: 'k8s-east', label: 'East' },
]
const names = readClusterGroupNames(
  fakeParams({ role2label: 'administrators=Administrators,view=Viewers,view-logs=Log viewers,,=x' }),
  fakeParseContext(),
)
const rows = (...groups: string[]) =>
  clusterGroups(groups, names, clusters).map(({ Cluster, Namespace, Name }) => [Cluster, Namespace, Name].join(' | '))

test.each([
  ['k8s-cluster-k8s-administrators', 'Control plane | N/A | Administrators'],
  ['k8s-cluster-k8s-east-administrators-external', 'East | N/A | Administrators'],
  ['k8s-namespace-administrators-k8s-payroll-internal', 'Control plane | payroll | Administrators'],
  ['k8s-namespace-view-logs-k8s-east-a-b', 'East | a-b | Log viewers'],
  ['approvers-k8s-k8s-payroll', 'Control plane | payroll | Approver'],
  ['approvers-k8s-east-payroll', 'East | payroll | Approver'],
  ['k8s-cluster-west-administrators', 'N/A | N/A | k8s-cluster-west-administrators'],
  ['k8s-cluster-k8s-', 'N/A | N/A | k8s-cluster-k8s-'],
  ['k8s-namespace-owners-k8s-payroll', 'N/A | N/A | k8s-namespace-owners-k8s-payroll'],
  ['staff', 'N/A | N/A | staff'],
])('%s', (group, row) => {
  expect(rows(group)).toEqual([row])
})

test('rows are sorted, and each is there once', () => {
  const same = ['k8s-cluster-k8s-view-external', 'k8s-cluster-k8s-view-internal']
  expect(rows('staff', ...same, 'k8s-cluster-k8s-admin', 'k8s-namespace-view-k8s-a', 'crew')).toEqual([
    'Control plane | N/A | Admin',
    'Control plane | N/A | View',
    'Control plane | a | Viewers',
    'N/A | N/A | crew',
    'N/A | N/A | staff',
  ])
})

test('without the mechanism there are the usual suffixes, and no roles of namespaces', () => {
  const usual = readClusterGroupNames(undefined, fakeParseContext())
  expect(usual).toEqual({ suffixes: ['-external', '-internal'], roles: new Map() })
})
