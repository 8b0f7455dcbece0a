import { expect, test } from 'vitest'
import { type Intent, intentsFromJson, intentsToJson, isRefusedCall, unreported } from '#engine/workflow/intents.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonValue } from '#kernel/json.ts'

const intent = (id: string, more: Partial<Intent> = {}): Intent => ({
  id,
  time: new Date(1_700_000_000_000),
  requestor: 'r',
  subject: 's',
  workflow: { id: 'run', name: 'w' },
  target: 't',
  kind: 'attribute',
  action: 'add',
  attribute: 'mail',
  ...more,
})

test('planned changes survive storing', () => {
  const intents = [intent('1', { value: 'v', caller: 'c', reason: 'why', approval: 'a', requestId: 'q' }), intent('2')]
  const text = JSON.stringify(intentsToJson(intents))
  expect(intentsFromJson(JSON.parse(text) as JsonValue[])).toEqual(intents)
})

test.each([[[1]], [[{}]], [[{ ...intentsToJson([intent('1')])[0], kind: 'other' }]]])(
  'anything else is rejected: %j',
  (list) => {
    expect(() => intentsFromJson(list as JsonValue[])).toThrow(expect.objectContaining({ code: 'WORKFLOW_FAILED' }))
  },
)

test('a change with an audit row, or planned twice, is not repeated', () => {
  const intents = [intent('1'), intent('2'), intent('3', { value: 'x' }), intent('4', { target: 'other' })]
  expect(unreported(intents, []).map(({ id }) => id)).toEqual(['1', '3', '4'])
  expect(unreported(intents, [intent('row', { value: 'x' })]).map(({ id }) => id)).toEqual(['1', '4'])
})

test('after a refusal nothing has changed; after any other error it is unknown', () => {
  expect(isRefusedCall(new GatewayError('CONFLICT', 'x'))).toBe(true)
  expect(isRefusedCall(new GatewayError('TARGET_TIMEOUT', 'x'))).toBe(false)
  expect(isRefusedCall(new GatewayError('TARGET_UNREACHABLE', 'x'))).toBe(false)
  expect(isRefusedCall(new TypeError('x'))).toBe(false)
})
