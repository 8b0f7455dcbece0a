import { expect, test } from 'vitest'
import {
  isRefusedCall,
  type PlannedChange,
  plannedToJson,
  savedChanges,
  unreported,
} from '#engine/workflow/planned-changes.ts'
import { GatewayError } from '#kernel/errors.ts'

const change = (id: string, more: Partial<PlannedChange> = {}): PlannedChange => ({
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
  const plannedChanges = [
    change('1', { value: 'v', caller: 'c', reason: 'why', approval: 'a', requestId: 'q' }),
    change('2'),
  ]
  const text = JSON.stringify(plannedToJson(plannedChanges))
  expect(savedChanges.parse(JSON.parse(text))).toEqual(plannedChanges)
})

test.each([[[1]], [[{}]], [[{ ...plannedToJson([change('1')])[0], kind: 'other' }]]])(
  'anything else is rejected: %j',
  (list) => {
    expect(savedChanges.safeParse(list).success).toBe(false)
  },
)

test('a change with an audit row, or planned twice, is not repeated', () => {
  const plannedChanges = [change('1'), change('2'), change('3', { value: 'x' }), change('4', { target: 'other' })]
  expect(unreported(plannedChanges, []).map(({ id }) => id)).toEqual(['1', '3', '4'])
  expect(unreported(plannedChanges, [change('row', { value: 'x' })]).map(({ id }) => id)).toEqual(['1', '4'])
})

test('after a refusal nothing has changed; after any other error it is unknown', () => {
  expect(isRefusedCall(new GatewayError('CONFLICT', 'x'))).toBe(true)
  expect(isRefusedCall(new GatewayError('TARGET_TIMEOUT', 'x'))).toBe(false)
  expect(isRefusedCall(new GatewayError('TARGET_UNREACHABLE', 'x'))).toBe(false)
  expect(isRefusedCall(new TypeError('x'))).toBe(false)
})
