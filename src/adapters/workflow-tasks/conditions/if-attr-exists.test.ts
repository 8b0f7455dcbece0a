import { expect, test } from 'vitest'
import { issuesOf, userAfter } from '#testing/workflows/workflow-fixture.ts'

const branches = {
  onSuccess: [{ taskType: 'addGroup', name: 'yes' }],
  onFailure: [{ taskType: 'addGroup', name: 'no' }],
}

test.each([
  ['MAIL', 'yes'],
  ['phone', 'no'],
  ['$which$', 'yes'],
  ['TREMOLO_USER_ID', 'yes'],
])('ifAttrExists %s runs the %s branch', async (name, group) => {
  const task = { taskType: 'ifAttrExists', name, ...branches }
  const user = await userAfter([task], { attributes: { mail: ['m'] }, params: { which: 'mail' } })
  expect(user?.groups).toEqual([group])
})

test('an absent branch does nothing', async () => {
  const user = await userAfter([{ taskType: 'ifAttrExists', name: 'phone' }], { groups: ['g'] })
  expect(user?.groups).toEqual(['g'])
})

test('a name is required', () => {
  expect(issuesOf([{ taskType: 'ifAttrExists' }])).toEqual(['0.name: "name" is required'])
})
