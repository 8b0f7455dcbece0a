import { expect, test } from 'vitest'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import { groupsInCluster } from './cluster-groups.ts'

const cluster = (label: string) => Object.assign(new MemoryTarget(), { objects: {}, label })
const { targets } = fakeModuleHost({
  targets: { k8s: cluster('Home'), 'k8s-blue': cluster('Blue'), database: new MemoryTarget() },
})
const groups = [
  'staff',
  'k8s-readers',
  'k8s-cluster-k8s-administrators-internal',
  'k8s-cluster-k8s-blue-administrators',
  'k8s-cluster-k8s-green-administrators',
  'k8s-cluster-database-administrators',
  'k8s-namespace-viewers-k8s-shop',
  'k8s-namespace-site-admins-k8s-blue-shop-external',
  'k8s-namespace-viewers-k8s-k8s-blue-x',
  'k8s-namespace-viewers-gone-shop',
  'approvers-k8s-k8s-shop',
  'approvers-k8s-k8s-blue-shop',
  'approvers-shop',
]
const everywhere = ['staff', 'k8s-readers', 'approvers-shop']

test.each([
  [
    'k8s',
    [
      'k8s-cluster-k8s-administrators-internal',
      'k8s-cluster-k8s-green-administrators',
      'k8s-namespace-viewers-k8s-shop',
      'approvers-k8s-k8s-shop',
    ],
  ],
  [
    'blue',
    [
      'k8s-cluster-k8s-blue-administrators',
      'k8s-namespace-site-admins-k8s-blue-shop-external',
      'approvers-k8s-k8s-blue-shop',
    ],
  ],
  ['green', ['k8s-cluster-k8s-green-administrators']],
  ['red', []],
])('in the cluster %s its own groups count, and those of no cluster', (name, own) => {
  expect([...groupsInCluster(groups, name, targets)].sort()).toEqual([...everywhere, ...own].sort())
})

test('a cluster can be named by its target or its label', () => {
  const one = ['k8s-cluster-k8s-blue-administrators']
  expect(groupsInCluster(one, 'k8s-blue', targets)).toEqual(one)
  expect(groupsInCluster(one, 'Blue', targets)).toEqual(one)
  expect(groupsInCluster(one, 'Home', targets)).toEqual([])
})
