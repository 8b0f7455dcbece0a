import { expect, test } from 'vitest'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import { customTask, issuesOf, startWorkflows } from '#testing/workflows/workflow-fixture.ts'

test('the user is in no group afterwards, also if the memberships were unknown', async () => {
  const store = new MemoryTarget([{ userID: 'jjackson', groups: ['a', 'b'] }])
  const tasks = [
    { taskType: 'addGroup', name: 'before' },
    customTask('tasks.ClearGroups'),
    { taskType: 'addGroup', name: 'after' },
    { taskType: 'provision', target: 'store', sync: true },
  ]
  const { run } = await startWorkflows({ workflows: { w: tasks }, targets: { store } })
  await run('w', { keepGroups: true })
  expect(store.stored('jjackson')?.groups).toEqual(['after'])
})

test('takes no parameters', () => {
  expect(issuesOf([customTask('tasks.ClearGroups', { name: 'x' })])).toEqual([
    '0.params.name: unknown parameter "name"',
  ])
})
