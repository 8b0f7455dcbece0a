import { describe, expect, test } from 'vitest'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import { customTask, parseTasks, startWorkflows, userAfter } from '#testing/workflows/workflow-fixture.ts'

const load = (extra = {}) =>
  customTask('tasks.LoadGroupsFromTarget', { nameAttr: 'username', target: 'store', ...extra })
const store = () => new MemoryTarget([{ userID: 'jj', groups: ['group1', 'group2'] }])
const attributes = { username: ['jj'] }
const add = (name: string, remove = false) => ({ taskType: 'addGroup', name, remove })

describe('LoadGroupsFromTarget', () => {
  test("adds the target's groups to the user's", async () => {
    const user = await userAfter([load()], { attributes, groups: ['own', 'GROUP1'] }, { targets: { store: store() } })
    expect(user?.groups).toEqual(['own', 'GROUP1', 'group2'])
  })

  test("inverse keeps the target's groups that the user does not have", async () => {
    const call = { attributes, groups: ['group1', 'own'] }
    expect((await userAfter([load({ inverse: 'true' })], call, { targets: { store: store() } }))?.groups).toEqual([
      'group2',
    ])
  })

  test('a change recorded before loading is kept', async () => {
    const tasks = [add('group3'), add('group1', true), load()]
    const user = await userAfter(tasks, { attributes, keepGroups: true }, { targets: { store: store() } })
    expect(user?.groups).toEqual(['group3', 'group2'])
  })

  test('inverse after an addGroup on unknown memberships removes that group', async () => {
    const tasks = [add('group1'), load({ inverse: 'true' })]
    const user = await userAfter(tasks, { attributes, keepGroups: true }, { targets: { store: store() } })
    expect(user?.groups).toEqual(['group2'])
  })

  test('a missing user has no groups; without the attribute the login is looked up', async () => {
    const targets = { store: store() }
    expect((await userAfter([load()], { groups: ['own'] }, { targets }))?.groups).toEqual(['own'])
    expect((await userAfter([load()], { userID: 'jj' }, { targets }))?.groups).toEqual(['group1', 'group2'])
  })

  test('values that are computed from earlier memberships never overwrite newer ones', async () => {
    const target = store()
    const provision = { taskType: 'provision', target: 'store', sync: true }
    const { run } = await startWorkflows({
      workflows: { w: [load(), add('new'), provision] },
      targets: { store: target },
    })
    target.before = ({ method }) => {
      if (method === 'syncUser') target.touch('jj', ['outside'])
    }
    await expect(run('w', { userID: 'jj', keepGroups: true })).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
    expect(target.stored('jj')?.groups).toEqual(['outside'])
    target.before = () => {}
    await run('w', { userID: 'jj', keepGroups: true })
    expect(target.stored('jj')?.groups.toSorted()).toEqual(['new', 'outside'])
    const stale = run('w', { userID: 'jj', keepGroups: true, basedOn: { target: 'store', version: '1' } })
    await expect(stale).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
  })

  test('while the login changes the user is found by either login', async () => {
    const groupsOf = async (userID: string, newUserID: string, username: string) => {
      const result = new MemoryTarget()
      const tasks = [load(), { taskType: 'provision', target: 'result', sync: true }]
      const { run } = await startWorkflows({ workflows: { w: tasks }, targets: { store: store(), result } })
      await run('w', { userID, newUserID, attributes: { username: [username] }, keepGroups: true })
      return result.stored(newUserID)?.groups
    }
    expect(await groupsOf('jackson', 'jj', 'jackson')).toEqual(['group1', 'group2'])
    expect(await groupsOf('jj', 'smith', 'smith')).toEqual(['group1', 'group2'])
    expect(await groupsOf('jj', 'smith', 'someone')).toEqual([])
  })

  test('refers to its target and reads its attribute', () => {
    const { tasks, referred } = parseTasks([load()])
    expect(referred).toMatchObject([{ kind: 'target', name: 'store' }])
    expect(tasks[0]?.flow.reads).toEqual([{ attribute: 'username', path: [0, 'params', 'nameAttr'] }])
  })
})
