import { expect, test } from 'vitest'
import { customTask, parseTasks, userAfter } from '#testing/workflows/workflow-fixture.ts'

const task = customTask('tasks.GenUUIDAttribute', { attributeName: 'uuid' })

test('replaces the attribute with a new UUID', async () => {
  const call = { attributes: { uuid: ['old'] } }
  const [first, second] = [await userAfter([task], call), await userAfter([task], call)]
  expect(first?.attributes['uuid']).toEqual([expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-/)])
  expect(first?.attributes['uuid']).not.toEqual(second?.attributes['uuid'])
})

test('declares the attribute it produces', () => {
  expect(parseTasks([task]).tasks[0]?.flow.produces).toEqual([
    { attribute: 'uuid', path: [0, 'params', 'attributeName'] },
  ])
})
