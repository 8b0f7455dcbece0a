import { expect, test } from 'vitest'
import { runTask, type TaskRunOptions } from '#testing/workflows/run-task.ts'
import { customTask, issuesOf, parseTasks } from '#testing/workflows/workflow-fixture.ts'

const task = (more = {}) =>
  customTask('tasks.AsyncCallWorkflow', {
    workflowName: 'other',
    uidAttributeName: 'login',
    workflowReason: 'because of $why$',
    ...more,
  })

const started = async (spec = task(), options: TaskRunOptions = {}) => {
  const attributes = { login: ['jen'], mail: ['jen@example.com'] }
  const { starts } = await runTask(spec, { attributes, requestor: 'boss', ...options })
  return starts[0]
}

test('starts an independent run for the same user, by the same requester', async () => {
  const user = { groups: ['g'], password: 'hunter2' }
  const call = await started(task(), { user, request: { why: 'audit', WORKFLOW_ID: 'run-1', left: 'behind', n: 7 } })
  expect(call).toMatchObject({
    head: { workflow: 'other', requester: 'boss', reason: 'because of audit' },
    asynchronous: true,
  })
  expect(call?.user).toMatchObject({ userID: 'jen', groups: ['g'] })
  expect(call?.user.attributes.toObject()).toEqual({ login: ['jen'], mail: ['jen@example.com'] })
  expect(call?.params).toEqual({ why: 'audit', left: 'behind' })
  expect(call?.password).toBe('hunter2')
})

test('the name may come from the request, and the login from TREMOLO_USER_ID', async () => {
  const spec = task({ workflowName: 'for-$why$', uidAttributeName: 'TREMOLO_USER_ID' })
  const call = await started(spec, { request: { why: 'audit' }, user: { keepGroups: true, requestReason: 'own' } })
  expect(call).toMatchObject({ head: { workflow: 'for-audit' }, user: { userID: 'jjackson' }, keepGroups: true })
  const without = customTask('tasks.AsyncCallWorkflow', { workflowName: 'o', uidAttributeName: 'login' })
  expect((await started(without, { user: { requestReason: 'own' } }))?.head.reason).toBe('own')
})

test('nothing is started without a login or a name', async () => {
  await expect(started(task(), { attributes: {} })).rejects.toMatchObject({ code: 'WORKFLOW_FAILED' })
  await expect(started(task({ workflowName: '$none$' }))).rejects.toMatchObject({ code: 'WORKFLOW_FAILED' })
})

test('a fixed name must exist, and the attribute is read', () => {
  const { tasks, referred } = parseTasks([task()])
  expect(referred).toEqual([{ kind: 'workflow', name: 'other', path: [0, 'params', 'workflowName'] }])
  expect(tasks[0]?.flow.reads).toEqual([{ attribute: 'login', path: [0, 'params', 'uidAttributeName'] }])
  expect(parseTasks([task({ workflowName: 'w-$why$' })]).referred).toEqual([])
  expect(issuesOf([customTask('tasks.AsyncCallWorkflow')])).toHaveLength(2)
})
