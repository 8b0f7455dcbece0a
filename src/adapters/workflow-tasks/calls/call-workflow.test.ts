import { expect, test } from 'vitest'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import { issuesOf, parseTasks, startWorkflows } from '#testing/workflows/workflow-fixture.ts'

test("runs the other workflow's tasks on the same user and request, then continues", async () => {
  const store = new MemoryTarget()
  const { run, audit } = await startWorkflows({
    workflows: {
      outer: [
        { taskType: 'callWorkflow', name: 'inner' },
        { taskType: 'addGroup', name: '$left$' },
        { taskType: 'provision', target: 'store', sync: true },
      ],
      inner: [
        { taskType: 'addGroup', name: 'inner' },
        { taskType: 'addAttribute', name: 'left', value: 'behind', addToRequest: true },
      ],
    },
    targets: { store },
  })
  await run('outer')
  expect(store.stored('jjackson')?.groups).toEqual(['inner', 'behind'])
  expect(audit.rows.every(({ workflow }) => workflow.name === 'outer')).toBe(true)
})

test('the name is not a template, is a reference, and takes part in the check for cycles', () => {
  const { tasks, referred } = parseTasks([{ taskType: 'callWorkflow', name: '$x$' }])
  expect(tasks[0]?.calls).toEqual(['$x$'])
  expect(referred).toEqual([{ kind: 'workflow', name: '$x$', path: [0, 'name'] }])
  expect(issuesOf([{ taskType: 'callWorkflow' }])).toEqual(['0.name: "name" is required'])
})
