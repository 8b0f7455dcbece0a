import { describe, expect, test } from 'vitest'
import { silentLogger } from '#kernel/logger.ts'
import type { TargetChange } from '#sdk/target/target.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import { runTask } from '#testing/workflows/run-task.ts'
import { customTask, issuesOf } from '#testing/workflows/workflow-fixture.ts'

const task = customTask('tasks.RevokeAccess', { target: '$t$', kind: '$k$', name: '$n$' })

async function revoke(store: MemoryTarget, kind: string, name: string, userID = 'jjackson'): Promise<TargetChange[]> {
  const changes: TargetChange[] = []
  await runTask(task, {
    user: { userID },
    request: { t: 'store', k: kind, n: name },
    host: fakeModuleHost({ targets: { store } }),
    forTarget: () => ({
      workflow: { id: 'run-1', name: 'w' },
      idempotencyKey: 'run-1/1',
      requestor: 'gatehouse',
      params: {},
      log: silentLogger,
      audit: (change) => void changes.push(change),
    }),
  })
  return changes
}

const stored = () =>
  new MemoryTarget([{ userID: 'jjackson', attributes: { mail: ['m'] }, groups: ['staff', 'Vault', 'other'] }])

test('every parameter is required', () => {
  expect(issuesOf([customTask('tasks.RevokeAccess')])).toHaveLength(3)
})

describe('a membership', () => {
  test('is removed, and nothing else', async () => {
    const store = stored()
    expect(await revoke(store, 'group', 'vault')).toEqual([
      { subject: 'group', action: 'delete', attribute: 'groups', value: 'Vault' },
    ])
    expect(store.stored('jjackson')).toEqual({ attributes: { mail: ['m'] }, groups: ['staff', 'other'] })
    expect(await revoke(store, 'group', 'vault')).toEqual([])
  })

  test('of a deleted user does not re-create the user', async () => {
    const store = new MemoryTarget()
    expect(await revoke(store, 'group', 'vault')).toEqual([])
    expect(store.methods()).toEqual(['findUser'])
  })

  test('a concurrent change is not lost', async () => {
    const store = stored()
    let once = true
    store.before = ({ method }) => {
      if (method === 'syncUser' && once) store.touch('jjackson', ['staff', 'Vault', 'outside'])
      if (method === 'syncUser') once = false
    }
    await revoke(store, 'group', 'vault')
    expect(store.stored('jjackson')?.groups).toEqual(['staff', 'outside'])
  })
})

test('an account is deleted, once', async () => {
  const store = stored()
  expect(await revoke(store, 'user', 'JJACKSON')).toMatchObject([{ subject: 'entry', action: 'delete' }])
  expect(store.stored('jjackson')).toBeUndefined()
  expect(await revoke(store, 'user', 'jjackson')).toEqual([])
})

test.each([
  ['user', 'somebody-else'],
  ['role', 'vault'],
  ['', 'vault'],
  ['group', ' '],
])('%s "%s" is rejected', async (kind, name) => {
  const store = stored()
  await expect(revoke(store, kind, name)).rejects.toMatchObject({ code: 'WORKFLOW_FAILED' })
  expect(store.stored('jjackson')?.groups).toHaveLength(3)
})
