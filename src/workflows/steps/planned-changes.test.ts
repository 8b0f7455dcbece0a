import { expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import { silentLogger } from '#kernel/logger.ts'
import type { ClusterObject } from '#protocols/kubernetes/cluster.ts'
import type { ClusterApi } from '#sdk/target/kubernetes-cluster.ts'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import {
  findPlannedChanges,
  isRefusedCall,
  type PlannedChange,
  plannedToJson,
  savedChanges,
  unreported,
} from './planned-changes.ts'

const change = (id: string, more: Partial<PlannedChange> = {}): PlannedChange => ({
  id,
  time: new Date(1_700_000_000_000),
  requestor: 'r',
  subject: 's',
  workflow: { id: 'run', name: 'w' },
  target: 't',
  kind: 'attribute',
  action: 'add',
  attribute: 'mail',
  ...more,
})

test('planned changes survive storing', () => {
  const plannedChanges = [
    change('1', { value: 'v', caller: 'c', reason: 'why', approval: 'a', requestId: 'q' }),
    change('2'),
  ]
  const text = JSON.stringify(plannedToJson(plannedChanges))
  expect(savedChanges.parse(JSON.parse(text))).toEqual(plannedChanges)
})

test.each([[[1]], [[{}]], [[{ ...plannedToJson([change('1')])[0], kind: 'other' }]]])(
  'anything else is rejected: %j',
  (list) => {
    expect(savedChanges.safeParse(list).success).toBe(false)
  },
)

test('a change with an audit row, or planned twice, is not repeated', () => {
  const plannedChanges = [change('1'), change('2'), change('3', { value: 'x' }), change('4', { target: 'other' })]
  expect(unreported(plannedChanges, []).map(({ id }) => id)).toEqual(['1', '3', '4'])
  expect(unreported(plannedChanges, [change('row', { value: 'x' })]).map(({ id }) => id)).toEqual(['1', '4'])
})

test('after a refusal nothing has changed; after any other error it is unknown', () => {
  expect(isRefusedCall(new GatewayError('CONFLICT', 'x'))).toBe(true)
  expect(isRefusedCall(new GatewayError('TARGET_TIMEOUT', 'x'))).toBe(false)
  expect(isRefusedCall(new GatewayError('TARGET_UNREACHABLE', 'x'))).toBe(false)
  expect(isRefusedCall(new TypeError('x'))).toBe(false)
})

test('objects of a cluster are found by their paths', async () => {
  const stored = new Map<string, object>([
    ['namespaces/team', {}],
    ['namespaces/ending', { deletionTimestamp: '2026-01-01T00:00:00Z' }],
    ['team/rolebindings/admin', {}],
  ])
  const get: ClusterApi['get'] = async ({ plural, namespace }, name) => {
    const metadata = stored.get([namespace, plural, name].filter((part) => part !== undefined).join('/'))
    return metadata && ({ metadata: {}, content: { metadata } } as unknown as ClusterObject)
  }
  const target = Object.assign(new MemoryTarget(), { objects: { get } as ClusterApi })
  const object = (id: string, action: 'add' | 'replace' | 'delete', value: string) =>
    change(id, { kind: 'entry', action, attribute: 'kubernetes-X', value })
  const binding = '/apis/rbac.authorization.k8s.io/v1/namespaces/team/rolebindings'
  const found = await findPlannedChanges(
    [
      object('created', 'add', '/api/v1/namespaces/team'),
      object('not created', 'add', '/api/v1/namespaces/none'),
      object('deleted', 'delete', '/api/v1/namespaces/none'),
      object('being deleted', 'delete', '/api/v1/namespaces/ending'),
      object('not deleted', 'delete', `${binding}/admin`),
      object('bound', 'add', `${binding}/admin`),
      object('changed', 'replace', '/api/v1/namespaces/team'),
      object('no path', 'add', 'team'),
    ],
    { target: () => target, workflow: { id: 'run', name: 'w' }, log: silentLogger },
  )
  const ids = (changes: readonly PlannedChange[]) => changes.map(({ id }) => id)
  expect(ids(found.there)).toEqual(['created', 'deleted', 'being deleted', 'bound'])
  expect(ids(found.absent)).toEqual(['not created', 'not deleted'])
  expect(ids(found.unknown)).toEqual(['changed', 'no path'])
})
