import { expect, test } from 'vitest'
import { customTask, issuesOf, userAfter } from '#testing/workflows/workflow-fixture.ts'

const copy = (extra = {}) => customTask('tasks.CopyFromUserToRequest', { attribute: ['project', 'absent'], ...extra })
const show = { taskType: 'addAttribute', name: 'seen', value: '<$project$|$absent$>' }
const call = { attributes: { project: ['first', 'second'] } }

test('the first value moves from the user to the request', async () => {
  expect((await userAfter([copy(), show], call))?.attributes).toEqual({ seen: ['<first|>'] })
})

test('keepInUser keeps it', async () => {
  const user = await userAfter([copy({ keepInUser: 'true' }), show], call)
  expect(user?.attributes).toEqual({ project: ['first', 'second'], seen: ['<first|>'] })
})

test('keys of the engine are rejected', () => {
  expect(issuesOf([copy({ attribute: ['ok', 'APPROVAL_IMMEDIATE_ACTION', 'accessEnds'] })])).toEqual([
    '0.params.attribute.1: "APPROVAL_IMMEDIATE_ACTION" is a key of the engine',
    '0.params.attribute.2: "accessEnds" is a key of the engine',
  ])
})
