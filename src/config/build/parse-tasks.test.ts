import { expect, test } from 'vitest'
import { templateKeyPlace, templateKeysIn } from './parse-tasks.ts'

test('names are found in every text, at any depth, and once', () => {
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

test('attributes, lone dollars and texts that are not templates give no name', () => {
  expect([...templateKeysIn(['${mail}', 'costs $5', `$x$${'y'.repeat(70_000)}`, 7, null, true])]).toEqual([])
})

test('the first place of a name is reported, in the order of the document', () => {
  const tasks = [
    { name: '$other$', onSuccess: [{ expiresAt: 'x' }, { expiresAt: 'until $end$' }] },
    { expiresAt: '$end$' },
  ]
  expect(templateKeyPlace(tasks, 'end')).toEqual([0, 'onSuccess', 1, 'expiresAt'])
  expect(templateKeyPlace(tasks, 'End')).toBeUndefined()
  expect(templateKeyPlace('$end$', 'end')).toEqual([])
  expect(templateKeyPlace(null, 'end')).toBeUndefined()
})
