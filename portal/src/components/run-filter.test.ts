import { expect, test } from 'vitest'
import { stateOptions, statesOf } from './run-filter.ts'

const t = (key: string): string => key

test('unknown states of an address are dropped', () => {
  expect(statesOf('failed,incident')).toEqual(['failed', 'incident'])
  expect(statesOf('constructor,failed')).toEqual(['failed'])
  expect(statesOf(undefined)).toEqual([])
})

test('a set of states that has no name is still a choice', () => {
  const values = (state: string) => stateOptions(state, t).map(({ value }) => value)
  expect(values('failed,incident').filter((value) => value === 'failed,incident')).toHaveLength(1)
  expect(stateOptions('denied,failed', t).at(-1)).toEqual({
    value: 'denied,failed',
    label: 'requestState.denied, requestState.failed',
  })
  expect(values('nonsense')).not.toContain('nonsense')
})
