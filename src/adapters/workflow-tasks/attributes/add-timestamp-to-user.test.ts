import { expect, test } from 'vitest'
import { customTask, issuesOf, parseTasks, userAfter } from '#testing/workflows/workflow-fixture.ts'

const task = customTask('com.tremolosecurity.provisioning.customTasks.AddTimestampToUser', {
  attributeName: 'lastUpdated',
})

test('replaces the attribute with the time in milliseconds', async () => {
  const user = await userAfter([task], { attributes: { lastUpdated: ['1'] } })
  expect(user?.attributes['lastUpdated']).toEqual([String(Date.UTC(2026, 0, 2, 3, 4, 5))])
})

test('declares the attribute it produces, and requires its name', () => {
  expect(parseTasks([task]).tasks[0]?.flow.produces).toEqual([
    { attribute: 'lastUpdated', path: [0, 'params', 'attributeName'] },
  ])
  expect(issuesOf([customTask('tasks.AddTimestampToUser', {})])).toEqual([
    '0.params.attributeName: parameter "attributeName" is required',
  ])
})

test('ClearPasswordResets says that it has no effect, and changes nothing', async () => {
  const clear = customTask('com.tremolosecurity.provisioning.customTasks.ClearPasswordResets', { mechName: 'reset' })
  const { issues } = parseTasks([clear])
  expect(issues.list.map(({ level, message }) => [level, message])).toEqual([
    ['warning', expect.stringContaining('tasks.ClearPasswordResets has no effect here')],
  ])
  const user = await userAfter([clear], { attributes: { mail: ['a@b.test'] }, groups: ['x'] })
  expect(user).toMatchObject({ attributes: { mail: ['a@b.test'] }, groups: ['x'] })
})
