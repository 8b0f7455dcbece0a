import { expect, test } from 'vitest'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import { customTask, startWorkflows, userAfter } from '#testing/workflows/workflow-fixture.ts'

const filter = customTask('tasks.FilterGroups', { name: ['User', 'Admins'] })

test('keeps the named groups, letter case included', async () => {
  const user = await userAfter([filter], { groups: ['User', 'admins', 'Developer', 'Admins'] })
  expect(user?.groups).toEqual(['User', 'Admins'])
})

test('with unknown memberships it only affects the recorded changes, and removes nothing', async () => {
  const store = new MemoryTarget([{ userID: 'jjackson', groups: ['Developer'] }])
  const add = (name: string) => ({ taskType: 'addGroup', name })
  const provision = { taskType: 'provision', target: 'store', sync: true }
  const workflows = { w: [add('User'), add('Rogue'), filter, provision] }
  const { run } = await startWorkflows({ workflows, targets: { store } })
  await run('w', { keepGroups: true })
  expect(store.stored('jjackson')?.groups).toEqual(['Developer', 'User'])
})
