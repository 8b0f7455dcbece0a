import { expect, test } from 'vitest'
import { customTask, parseTasks, userAfter } from '#testing/workflows/workflow-fixture.ts'

const task = customTask('tasks.Attribute2Groups', { attributeName: 'roles' })

test("the attribute's values become groups, and the attribute is removed", async () => {
  const call = { attributes: { Roles: ['a', 'b'], mail: ['m'] }, groups: ['own', 'A'] }
  expect(await userAfter([task], call)).toEqual({ attributes: { mail: ['m'] }, groups: ['own', 'A', 'b'] })
})

test('without the attribute nothing changes', async () => {
  expect((await userAfter([task], { groups: ['own'] }))?.groups).toEqual(['own'])
})

test('reads the attribute', () => {
  expect(parseTasks([task]).tasks[0]?.flow.reads).toEqual([
    { attribute: 'roles', path: [0, 'params', 'attributeName'] },
  ])
})
