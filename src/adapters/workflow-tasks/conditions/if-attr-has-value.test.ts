import { expect, test } from 'vitest'
import { issuesOf, parseTasks, userAfter } from '#testing/workflows/workflow-fixture.ts'

const branches = {
  onSuccess: [{ taskType: 'addGroup', name: 'yes' }],
  onFailure: [{ taskType: 'addGroup', name: 'no' }],
}

test.each([
  ['two', 'yes'],
  ['TWO', 'no'],
  ['$wanted$', 'yes'],
  ['${other}', 'yes'],
  ['$absent$', 'no'],
])('ifAttrHasValue %s runs the %s branch', async (value, group) => {
  const task = { taskType: 'ifAttrHasValue', name: 'kind', value, ...branches }
  const attributes = { kind: ['one', 'two'], other: ['one'] }
  const user = await userAfter([task], { attributes, params: { wanted: 'two' } })
  expect(user?.groups).toEqual([group])
})

test.each<[string, string[], string]>([
  ['', [], 'yes'],
  ['', [''], 'yes'],
  ['', ['one'], 'no'],
  ['$empty$', [], 'no'],
])('ifAttrHasValue "%s" with the values %j runs the %s branch', async (value, kind, group) => {
  const task = { taskType: 'ifAttrHasValue', name: 'kind', value, ...branches }
  const user = await userAfter([task], { attributes: { kind }, params: { empty: '' } })
  expect(user?.groups).toEqual([group])
})

test('a caller cannot inject a template', async () => {
  const task = { taskType: 'ifAttrHasValue', name: 'kind', value: '$wanted$', ...branches }
  const user = await userAfter([task], { attributes: { kind: ['one'] }, params: { wanted: '${kind}' } })
  expect(user?.groups).toEqual(['no'])
})

test('name and value are required, and the flow declares the attributes it reads', () => {
  expect(issuesOf([{ taskType: 'ifAttrHasValue' }])).toEqual([
    '0.name: "name" is required',
    '0.value: "value" is required',
  ])
  const { tasks } = parseTasks([{ taskType: 'ifAttrHasValue', name: 'a', value: '${b}' }])
  expect(tasks[0]?.flow.reads).toEqual([
    { attribute: 'a', path: [0, 'name'] },
    { attribute: 'b', path: [0, 'value'] },
  ])
})
