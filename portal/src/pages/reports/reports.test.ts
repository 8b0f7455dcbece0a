import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ReportResult } from '#features/reports/contract/reports.ts'
import { chartChoices, chartPoints } from './report-chart.ts'
import { filtered, sorted, tableOf } from './report-table.ts'

const report = (dataFields: readonly string[], rows: readonly (readonly string[])[]): ReportResult => ({
  name: 'Report',
  reportid: 'r',
  description: '',
  headerFields: [],
  dataFields,
  grouping: [
    {
      header: {},
      data: rows.map((row) => Object.fromEntries(dataFields.flatMap((field, i) => (row[i] ? [[field, row[i]]] : [])))),
    },
  ],
})

test('the header of a group is in each of its rows, also with the name of a column', () => {
  const table = tableOf({
    ...report([], []),
    headerFields: ['Name'],
    dataFields: ['Name', 'Login'],
    grouping: [
      { header: { Name: 'A' }, data: [{ Name: 'x', Login: '1' }, { Name: 'y' }] },
      { header: {}, data: [{ Login: '3' }] },
    ],
  })
  expect(table.rows).toEqual([
    ['A', 'x', '1'],
    ['A', 'y', undefined],
    [undefined, undefined, '3'],
  ])
  expect(new Set(table.columns.map(({ key }) => key)).size).toBe(3)
  expect(table.columns.map(({ kind }) => kind)).toEqual(['text', 'text', 'number'])
})

test('numbers sort as numbers, times as times, and empty values come last in either direction', () => {
  const rows = [
    ['9', '2026-01-02T00:00:00Z'],
    ['10', ''],
    ['', '2026-01-01T23:00:00-02:00'],
    ['-1', '2025-12-31T00:00:00.5Z'],
  ]
  const table = tableOf(report(['n', 't'], rows))
  const order = (column: number, descending: boolean) =>
    sorted(table, { column, descending }, 'en').map((row) => row[column] ?? '')
  expect(order(0, false)).toEqual(['-1', '9', '10', ''])
  expect(order(0, true)).toEqual(['10', '9', '-1', ''])
  expect(order(1, false)).toEqual(['2025-12-31T00:00:00.5Z', '2026-01-02T00:00:00Z', '2026-01-01T23:00:00-02:00', ''])
})

test('sorting loses no row and is the same when done twice', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.string(), fc.string())), fc.boolean(), (rows, descending) => {
      const table = tableOf(report(['a', 'b'], rows))
      const once = sorted(table, { column: 0, descending }, 'en')
      expect(once.toSorted()).toEqual(table.rows.toSorted())
      expect(sorted({ ...table, rows: once }, { column: 0, descending }, 'en')).toEqual(once)
    }),
  )
})

test('rows are found by any cell, in any case', () => {
  const { rows } = tableOf(
    report(
      ['a', 'b'],
      [
        ['Ada', 'x'],
        ['Grace', 'ADA'],
        ['Linus', ''],
      ],
    ),
  )
  expect(filtered(rows, ' ada ')).toHaveLength(2)
  expect(filtered(rows, '')).toHaveLength(3)
})

test('a chart is offered for times and for few repeated values', () => {
  const rows = Array.from({ length: 8 }, (_, i) => [
    `id-${i}`,
    i % 2 === 0 ? 'red' : 'blue',
    `2026-01-0${(i % 3) + 1}T12:00:00Z`,
  ])
  const table = tableOf(report(['Id', 'Team', 'At'], rows))
  const choices = chartChoices(table)
  expect(choices.map(({ name, kind }) => [name, kind])).toEqual([
    ['Team', 'by-value'],
    ['At', 'over-time'],
  ])
  const points = choices.map((choice) =>
    chartPoints(table.rows, choice, (at) => new Date(at).toISOString().slice(0, 10)),
  )
  expect(points[0]).toEqual([
    { label: 'red', count: 4 },
    { label: 'blue', count: 4 },
  ])
  expect(points[1]).toEqual([
    { label: '2026-01-01', count: 3 },
    { label: '2026-01-02', count: 3 },
    { label: '2026-01-03', count: 2 },
  ])
  expect(chartChoices(tableOf(report(['Id'], [['a'], ['b'], ['c']])))).toEqual([])
})

test('days without rows are shown, and of many years only the last one', () => {
  const table = tableOf(report(['At'], [['2020-01-01T00:00:00Z'], ['2026-01-01T00:00:00Z'], ['2026-01-03T00:00:00Z']]))
  const [choice] = chartChoices(table)
  if (choice === undefined) throw new Error('there is no picture')
  const points = chartPoints(table.rows, choice, String)
  expect(points).toHaveLength(366)
  expect(points.slice(-3).map(({ count }) => count)).toEqual([1, 0, 1])
})
