import { expect, test } from 'vitest'
import { templateKeysIn } from './template-keys.ts'

test('names are found in every text, however deep, and once', () => {
  const tasks = [
    { taskType: 'addGroup', name: 'team-$team$', remove: '$remove$' },
    {
      taskType: 'ifAttrExists',
      name: 'x',
      onSuccess: [{ taskType: 'customTask', params: { a: ['$team$', '$b_c$'] } }],
    },
  ]
  expect([...templateKeysIn(tasks)].sort()).toEqual(['b_c', 'remove', 'team'])
})

test('attributes, lone dollars and texts that are no templates give no name', () => {
  expect([...templateKeysIn(['${mail}', 'costs $5', `$x$${'y'.repeat(70_000)}`, 7, null, true])]).toEqual([])
})
