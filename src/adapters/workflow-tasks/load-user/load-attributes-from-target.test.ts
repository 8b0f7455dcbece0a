import { expect, test } from 'vitest'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import { customTask, issuesOf, parseTasks, startWorkflows, userAfter } from '#testing/workflows/workflow-fixture.ts'

const load = (extra = {}) =>
  customTask('tasks.LoadAttributesFromTarget', { target: 'store', nameAttr: 'mail', ...extra })
const store = () => new MemoryTarget([{ userID: 'm', attributes: { uid: ['jj'], phone: ['1'], admin: ['true'] } }])

test('loads the named attributes, under either parameter name', async () => {
  const task = load({ name: ['uid'], attributes: ['phone', 'absent'] })
  const user = await userAfter(
    [task],
    { attributes: { mail: ['m'], absent: ['kept'] } },
    { targets: { store: store() } },
  )
  expect(user?.attributes).toEqual({ mail: ['m'], absent: ['kept'], uid: ['jj'], phone: ['1'] })
})

test('a user who is not in the target stays unchanged', async () => {
  const user = await userAfter(
    [load({ name: ['uid'] })],
    { attributes: { mail: ['x'] } },
    { targets: { store: store() } },
  )
  expect(user?.attributes).toEqual({ mail: ['x'] })
})

test('needs attributes to load, and declares them', () => {
  expect(issuesOf([load()])).toEqual(['0.params.name: parameter "name" is required'])
  const { flow } = parseTasks([load({ attributes: ['uid'] })]).tasks[0] ?? {}
  expect(flow?.produces).toEqual([{ attribute: 'uid', path: [0, 'params', 'attributes', 0] }])
  expect(flow?.reads).toEqual([{ attribute: 'mail', path: [0, 'params', 'nameAttr'] }])
})

test('values that are computed from earlier reads never overwrite newer ones', async () => {
  const target = store()
  const provision = { taskType: 'provision', target: 'store', sync: true, attributes: ['phone', 'note'] }
  const note = { taskType: 'addAttribute', name: 'note', value: 'n' }
  const { run } = await startWorkflows({
    workflows: { w: [load({ name: ['phone'] }), note, provision] },
    targets: { store: target },
  })
  target.before = ({ method }) => {
    if (method === 'syncUser') target.touch('m', [])
  }
  await expect(run('w', { userID: 'm', keepGroups: true })).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
  expect(target.stored('m')?.attributes).not.toHaveProperty('note')
})
