import { expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import { silentLogger } from '#kernel/logger.ts'
import type { ClusterObject } from '#protocols/kubernetes/cluster.ts'
import type { Target } from '#sdk/target/target.ts'
import { KnownGroupMappings } from './group-mappings.ts'

const object = (name: string, spec: object): ClusterObject => ({
  metadata: { name, uid: name, resourceVersion: '1' },
  content: { spec },
})

function open(kinds: Record<string, ClusterObject[]>) {
  const state = { now: 0, lists: [] as string[], away: false, warnings: [] as string[] }
  const list = async ({ plural, namespace }: { plural: string; namespace?: string }) => {
    if (state.away) throw new GatewayError('TARGET_UNREACHABLE', 'away')
    state.lists.push(`${namespace}/${plural}`)
    return kinds[plural] ?? []
  }
  const servedKind = async (_version: string, kind: string) => (`${kind.toLowerCase()}s` in kinds ? {} : undefined)
  const mappings = new KnownGroupMappings({
    mappings: [{ group: 'own', external: 'x' }],
    sources: [{ target: 'k8s', namespace: 'ns' }],
    targets: { get: () => ({ objects: { list, servedKind } }) as unknown as Target },
    clock: () => new Date(state.now),
    log: { ...silentLogger, warn: (message: string) => void state.warnings.push(message) },
  })
  return { state, mappings }
}

test('has the mappings of the configuration and of both kinds of a cluster, without those that are not valid', async () => {
  const { state, mappings } = open({
    groupmetadatas: [
      object('a', { groupName: 'Admins', externalName: ' CN=a ' }),
      object('b', { groupName: 'bare', externalName: '' }),
      object('c', { externalName: 'cn=c' }),
    ],
    namespacegroupmetadatas: [
      object('d', {
        cluster: 'k',
        namespace: 'n',
        mappings: [{ groupName: 'd', externalName: 'cn=d', roleName: 'r' }],
      }),
    ],
  })
  expect(await mappings.list()).toEqual([
    { group: 'own', external: 'x' },
    { group: 'admins', external: 'CN=a' },
    { group: 'd', external: 'cn=d' },
  ])
  expect([state.lists, state.warnings.length]).toEqual([['ns/groupmetadatas', 'ns/namespacegroupmetadatas'], 1])
})

test('reads again after five seconds, only the kinds that the cluster has, and reports that it is away', async () => {
  const kinds = { groupmetadatas: [] as ClusterObject[] }
  const { state, mappings } = open(kinds)
  expect(await mappings.list()).toHaveLength(1)
  kinds.groupmetadatas.push(object('a', { groupName: 'a', externalName: 'b' }))
  state.now = 4_999
  expect(await mappings.list()).toHaveLength(1)
  state.now = 5_000
  expect(await Promise.all([mappings.list(), mappings.list()])).toMatchObject([{ length: 2 }, { length: 2 }])
  expect(state.lists).toEqual(['ns/groupmetadatas', 'ns/groupmetadatas'])
  state.now = 10_000
  state.away = true
  await expect(mappings.list()).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
})
