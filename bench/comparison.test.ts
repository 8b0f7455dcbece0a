import { expect, test } from 'vitest'
import { compare, parseFigure } from './comparison.ts'

test.each([
  ['1,234/s, 56 µs CPU', { before: '', value: 1234, after: '/s', cpu: 56 }],
  ['12.5 %', { before: '', value: 12.5, after: ' %' }],
  ['p50 1.2 ms', { before: 'p50 ', value: 1.2, after: ' ms' }],
  ['1.09 times', { before: '', value: 1.09, after: ' times' }],
])('%s is a number with the text around it', (text, figure) => {
  expect(parseFigure(text)).toEqual(figure)
})

test('a figure that was not measured has no number', () => {
  expect(parseFigure('not measured: no Chromium')).toBeUndefined()
})

test('the table has the medians of the turns, their ratio and the budget; CPU and share have lines of their own', () => {
  const row = (rate: number, cpu: number, share: string) => ['create', `${rate}/s, ${cpu} µs CPU`, share, '>= 70.0 %']
  const before = [100, 300, 200].map((rate) => [row(rate, 50, '20.0 % of a bare route')])
  const after = [400, 1000, 100].map((rate) => [
    row(rate, 40, '35.0 % of a bare route'),
    ['start', '7 ms', '', '<= 9 ms'],
    ['page', '1.5 times', '', '<= 1.5 times'],
  ])
  expect(compare(before, after)).toBe(
    [
      '                             before        after      ratio  budget',
      'create                       200/s         400/s      2.00',
      'create, CPU                  50 µs         40 µs      0.80',
      'create, beside a bare route  20 %          35 %       1.75   >= 70.0 %',
      'start                        not measured  7 ms              <= 9 ms',
      'page                         not measured  1.5 times         <= 1.5 times',
    ].join('\n'),
  )
})
