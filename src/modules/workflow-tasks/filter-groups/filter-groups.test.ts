import { expect, test } from 'vitest'
import { MemoryTarget } from '#testing/memory-target.ts'
import { customTask, startWorkflows, userAfter } from '#testing/workflow-fixture.ts'

const filter = customTask('tasks.FilterGroups', { name: ['User', 'Admins'] })

test('lets the named groups pass, letter case included', async () => {
  const user = await userAfter([filter], { groups: ['User', 'admins', 'Developer', 'Admins'] })
  expect(user?.groups).toEqual(['User', 'Admins'])
})

test('on unknown memberships it reaches the noted changes only, and wipes nothing', async () => {
  const store = new MemoryTarget([{ userID: 'jjackson', groups: ['Developer'] }])
  const add = (name: string) => ({ taskType: 'addGroup', name })
  const provision = { taskType: 'provision', target: 'store', sync: true }
  const workflows = { w: [add('User'), add('Rogue'), filter, provision] }
  const { run } = await startWorkflows({ workflows, targets: { store } })
  await run('w', { keepGroups: true })
  expect(store.stored('jjackson')?.groups).toEqual(['Developer', 'User'])
})
