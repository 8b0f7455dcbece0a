import { expect, test } from 'vitest'
import { customTask, recordingLogger, startWorkflows } from '#testing/workflows/workflow-fixture.ts'

test('logs the user with the run and the task, without secrets', async () => {
  const log = recordingLogger()
  const workflows = { w: [customTask('tasks.PrintUserInfo', { message: 'here' })] }
  const { run } = await startWorkflows({ workflows, log })
  const attributes = {
    mail: ['m'],
    userPassword: ['hunter2'],
    apiToken: ['t0p'],
    totpKey: ['k3y'],
    photo: ['x'.repeat(5000)],
  }
  const { id } = await run('w', { attributes, groups: ['g'], password: 'hunter2' })
  expect(log.lines).toHaveLength(1)
  expect(log.lines[0]).toMatchObject({
    level: 'info',
    fields: {
      note: 'here',
      userID: 'jjackson',
      groups: ['g'],
      workflowId: id,
      workflow: 'w',
      task: 'w:0',
      attributes: { mail: ['m'], userPassword: '[redacted]' },
    },
  })
  const text = JSON.stringify(log.lines)
  expect(text).not.toMatch(/hunter2|t0p|k3y/)
  expect(text.length).toBeLessThan(1500)
})

test('shows a bounded number of values', async () => {
  const log = recordingLogger()
  const { run } = await startWorkflows({ workflows: { w: [customTask('tasks.PrintUserInfo')] }, log })
  const many = Array.from({ length: 5000 }, (_, i) => `v${i}`)
  await run('w', { attributes: { many, more: many }, groups: many })
  expect(JSON.stringify(log.lines).length).toBeLessThan(10_000)
})
