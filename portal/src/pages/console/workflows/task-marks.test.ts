import { expect, test } from 'vitest'
import type { AdminStep } from '#features/portal/contract/main-admin.ts'
import { marksOf, type TaskMarks } from './task-marks.ts'

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

/** As lines: `place outcome`, with the tasks of called workflows below their caller. */
const lines = (marks: TaskMarks, indent = ''): string[] =>
  [...marks].flatMap(([place, { outcome, called }]) => [
    `${indent}${place} ${outcome}`,
    ...(called === undefined ? [] : lines(called.marks, `${indent}${called.workflow} > `)),
  ])

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
  expect(marksOf([step(1, 'w:0', 'next')], 'w:0').get('w:0')).toEqual({ outcome: 'failed', attempts: 1 })
})

test('the tasks of a called workflow belong to the task that called it, and decide its outcome', () => {
  const timeline = [
    step(1, 'w:0', 'call'),
    step(2, 'mail:0', 'next'),
    step(3, 'w:1', 'call', 2),
    step(4, 'mail:0', 'call'),
    step(5, 'mail:server:0', 'next'),
    step(6, 'mail:1', 'wait'),
  ]
  const marks = marksOf(timeline)
  expect(lines(marks)).toEqual([
    'w:0 done',
    'mail > mail:0 done',
    'w:1 waiting',
    'mail > mail:0 done',
    'mail > mail:server > mail:server:0 done',
    'mail > mail:1 waiting',
  ])
  expect(marks.get('w:1')?.attempts).toBe(2)
  expect(lines(marksOf([...timeline, step(7, 'mail:1', 'next'), step(8, 'w:2', 'next')]))).toContain('w:1 done')
})

test('an incident in the first task of a called workflow is shown below its caller', () => {
  expect(lines(marksOf([step(1, 'w:0', 'call')], 'mail:0'))).toEqual(['w:0 failed', 'mail > mail:0 failed'])
})
