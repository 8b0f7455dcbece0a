import { expect, test } from 'vitest'
import { customTask, issuesOf, parseTasks } from '#testing/workflows/workflow-fixture.ts'

test('an unknown class name is reported with a suggestion', () => {
  expect(issuesOf([customTask('tasks.PrintUserInfos'), { taskType: 'customTask' }])).toEqual([
    '0.className: no custom task named "tasks.PrintUserInfos" (did you mean "tasks.PrintUserInfo"?)',
    '1.className: "className" is required',
  ])
})

test('unknown and missing parameters are reported at their positions', () => {
  expect(issuesOf([customTask('tasks.LoadGroupsFromTarget', { nameAttr: 'uid', invers: 'true' })])).toEqual([
    '0.params.target: parameter "target" is required',
    '0.params.invers: unknown parameter "invers" (did you mean "inverse"?)',
  ])
})

test('empty secretParams pass, others are rejected', () => {
  const task = { ...customTask('tasks.ClearGroups'), secretParams: [] }
  expect(issuesOf([task, { ...task, secretParams: [{ name: 'x' }] }])).toEqual([
    '1.secretParams: a task takes no parameters from secrets; give them to its target',
  ])
})

test.each([
  'com.tremolosecurity.provisioning.customTasks.PrintUserInfo',
  'com.tremolosecurity.provisioning.tasks.ClearGroups',
])('%s is an alias', (className) => {
  expect(issuesOf([customTask(className)])).toEqual([])
})

test('the misspelled names of the published guide are aliases', () => {
  const bare = 'com.tremolosecurity.provisioning.customTasks'
  const { issues, tasks } = parseTasks([
    customTask(bare, { attribute: ['a'] }),
    customTask(`${bare}.${bare}`, { attributeName: 'uuid' }),
  ])
  expect(issues.list).toEqual([])
  expect(tasks.map(({ flow }) => flow.produces.map(({ attribute }) => attribute))).toEqual([[], ['uuid']])
})
