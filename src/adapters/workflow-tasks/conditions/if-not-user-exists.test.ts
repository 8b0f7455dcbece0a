import { expect, test } from 'vitest'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import { issuesOf, parseTasks, userAfter } from '#testing/workflows/workflow-fixture.ts'

const task = (uidAttribute: string) => ({
  taskType: 'ifNotUserExists',
  target: 'store',
  uidAttribute,
  onSuccess: [{ taskType: 'addGroup', name: 'absent' }],
  onFailure: [{ taskType: 'addGroup', name: 'present' }],
})

test.each([
  ['mail', 'present'],
  ['other', 'absent'],
  ['TREMOLO_USER_ID', 'absent'],
  ['notThere', 'absent'],
])('by %s the user is %s', async (uidAttribute, group) => {
  const store = new MemoryTarget([{ userID: 'jj@example.com' }])
  const attributes = { mail: ['jj@example.com'], other: ['nobody'] }
  const user = await userAfter([task(uidAttribute)], { attributes }, { targets: { store } })
  expect(user?.groups).toEqual([group])
  expect(store.methods()).toEqual(['findUser'])
})

test('a target that does not answer does not mean that the user is absent', async () => {
  const store = new MemoryTarget()
  store.before = () => {
    throw new Error('down')
  }
  const run = userAfter([task('mail')], {}, { targets: { store } })
  await expect(run).rejects.toMatchObject({ code: 'WORKFLOW_FAILED' })
})

test('refers to the target and reads the attribute', () => {
  const { tasks, referred } = parseTasks([task('mail')])
  expect(referred[0]).toEqual({ kind: 'target', name: 'store', path: [0, 'target'] })
  expect(tasks[0]?.flow.reads).toEqual([{ attribute: 'mail', path: [0, 'uidAttribute'] }])
  expect(issuesOf([{ taskType: 'ifNotUserExists' }])).toHaveLength(2)
})
