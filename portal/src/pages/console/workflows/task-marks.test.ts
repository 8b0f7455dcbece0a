import { expect, test } from 'vitest'
import type { AdminStep } from '#contract/main-admin.ts'
import { marksOf } from './task-marks.ts'

const step = (id: number, task: string, outcome: string, attempt = 1): AdminStep => ({
  id,
  number: id,
  task,
  taskType: 'provision',
  attempt,
  outcome,
  started: '2030-01-01T00:00:00Z',
  ended: '2030-01-01T00:00:01Z',
})

test('the latest step of a task counts', () => {
  const marks = marksOf([
    step(1, 'w:0', 'wait'),
    step(2, 'w:0', 'branch'),
    step(3, 'w:1', 'failed'),
    step(4, 'w:1', 'next', 2),
  ])
  expect(Object.fromEntries(marks)).toEqual({
    'w:0': { outcome: 'done', attempts: 1 },
    'w:1': { outcome: 'done', attempts: 2 },
  })
})

test('the task of an incident failed, even if its step is not in the timeline', () => {
  expect(marksOf([step(1, 'w:0', 'wait')], 'w:1').get('w:1')).toEqual({ outcome: 'failed', attempts: 0 })
})
