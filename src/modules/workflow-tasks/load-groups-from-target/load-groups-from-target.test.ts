import { describe, expect, test } from 'vitest'
import { MemoryTarget } from '#testing/memory-target.ts'
import { customTask, parseTasks, userAfter } from '#testing/workflow-fixture.ts'

const load = (extra = {}) =>
  customTask('tasks.LoadGroupsFromTarget', { nameAttr: 'username', target: 'store', ...extra })
const store = () => new MemoryTarget([{ userID: 'jj', groups: ['group1', 'group2'] }])
const attributes = { username: ['jj'] }
const add = (name: string, remove = false) => ({ taskType: 'addGroup', name, remove })

describe('LoadGroupsFromTarget', () => {
  test('adds the groups of the target to those the user names', async () => {
    const user = await userAfter([load()], { attributes, groups: ['own', 'GROUP1'] }, { targets: { store: store() } })
    expect(user?.groups).toEqual(['own', 'GROUP1', 'group2'])
  })

  test('inverse leaves those of the target that the user does not name', async () => {
    const call = { attributes, groups: ['group1', 'own'] }
    expect((await userAfter([load({ inverse: 'true' })], call, { targets: { store: store() } }))?.groups).toEqual([
      'group2',
    ])
  })

  test('a change noted before loading is kept', async () => {
    const tasks = [add('group3'), add('group1', true), load()]
    const user = await userAfter(tasks, { attributes, keepGroups: true }, { targets: { store: store() } })
    expect(user?.groups).toEqual(['group3', 'group2'])
  })

  test('inverse after an addGroup on unknown memberships removes that group', async () => {
    const tasks = [add('group1'), load({ inverse: 'true' })]
    const user = await userAfter(tasks, { attributes, keepGroups: true }, { targets: { store: store() } })
    expect(user?.groups).toEqual(['group2'])
  })

  test('a user who is not there has no groups; without the attribute the login is looked up', async () => {
    const targets = { store: store() }
    expect((await userAfter([load()], { groups: ['own'] }, { targets }))?.groups).toEqual(['own'])
    expect((await userAfter([load()], { userID: 'jj' }, { targets }))?.groups).toEqual(['group1', 'group2'])
  })

  test('refers to its target and reads its attribute', () => {
    const { tasks, referred } = parseTasks([load()])
    expect(referred).toMatchObject([{ kind: 'target', name: 'store' }])
    expect(tasks[0]?.flow.reads).toEqual([{ attribute: 'username', path: [0, 'params', 'nameAttr'] }])
  })
})
