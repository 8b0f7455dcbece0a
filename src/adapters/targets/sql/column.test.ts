import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Column, type ColumnKind, canonical, decode, encode } from './column.ts'

const column = (kind: ColumnKind, more: Partial<Column> = {}): Column => ({
  dialect: 'sqlite',
  name: 'c',
  kind,
  type: kind,
  required: false,
  hasDefault: false,
  generated: false,
  ...more,
})

describe('canonical values', () => {
  test.each<[Column, string, string | undefined]>([
    [column('integer'), '-12', '-12'],
    [column('integer'), '007', undefined],
    [column('integer'), '-0', undefined],
    [column('integer', { bits: 16 }), '32767', '32767'],
    [column('integer', { bits: 16 }), '32768', undefined],
    [column('integer'), '9223372036854775807', '9223372036854775807'],
    [column('integer'), '9223372036854775808', undefined],
    [column('boolean'), 'TRUE', 'true'],
    [column('boolean'), '1', undefined],
    [column('decimal', { precision: 5, scale: 2 }), '123.45', '123.45'],
    [column('decimal', { precision: 5, scale: 2 }), '1234.5', undefined],
    [column('decimal', { precision: 5, scale: 2 }), '1.234', undefined],
    [column('decimal'), '1.50', undefined],
    [column('timestamp'), '2026-03-04T05:06:07+02:00', '2026-03-04T03:06:07Z'],
    [column('timestamp'), '2026-03-04 05:06:07.120', '2026-03-04T05:06:07.12Z'],
    [column('timestamp'), '2026-02-29T00:00:00Z', undefined],
    [column('timestamp'), '2026-03-04T24:00:00Z', undefined],
    [column('timestamp'), '2026-03-04T05:06:07.1234567Z', undefined],
    [column('timestamp'), 'yesterday', undefined],
    [column('date'), '2024-02-29', '2024-02-29'],
    [column('date'), '2026-02-29', undefined],
    [column('uuid'), '0D9F5F6E-0000-7000-8000-00000000000A', '0d9f5f6e-0000-7000-8000-00000000000a'],
    [column('text', { maxLength: 2 }), '🎉🎉', '🎉🎉'],
    [column('text', { maxLength: 2 }), 'abc', undefined],
    [column('text'), 'a\0b', undefined],
    [column('text'), '\ud800', undefined],
    [column('padded', { maxLength: 5 }), 'ab ', undefined],
    [column('affine'), '007', undefined],
    [column('affine'), 'x007', 'x007'],
    [column('binary'), 'x', undefined],
  ])('%j stores %s as %s', (given, value, expected) => {
    expect(canonical(given, value)).toBe(expected)
  })
})

test.each<[ColumnKind, string]>([
  ['text', 'text'],
  ['integer', 'bigint'],
  ['float', 'numeric'],
  ['float', 'double'],
  ['affine', 'string'],
  ['boolean', 'boolean'],
  ['timestamp', 'timestamp'],
  ['date', 'date'],
])('SQLite returns values of a column of kind %s from %s unchanged', { timeout: 60_000 }, (kind, type) => {
  const database = new DatabaseSync(':memory:')
  database.exec(`create table t (c ${type})`)
  const insert = database.prepare('insert into t values (?) returning cast(c as text) as c')
  const numbers = fc.oneof(
    fc.integer().map(String),
    fc.double({ noNaN: true }).map(String),
    fc.tuple(fc.integer({ min: -9999, max: 9999 }), fc.stringMatching(/^\d{1,12}$/)).map(([a, b]) => `${a}.${b}`),
    fc.stringMatching(/^[+-]? ?\d{0,20}\.?\d{0,5}(?:e[+-]?\d{1,3})?$/),
  )
  const times = fc.date({ noInvalidDate: true, min: new Date(0) }).map((time) => time.toISOString())
  const values = fc.oneof(numbers, times, fc.string(), fc.string({ unit: 'binary' }), fc.constantFrom('true', 'False'))
  const given = column(kind)
  fc.assert(
    fc.property(values, (value) => {
      const wanted = canonical(given, value)
      if (wanted === undefined) return
      const row = insert.get(encode(given, wanted))
      const found = decode(given, String(row?.['c']))
      if (found !== wanted) throw new Error(`${value} came back as ${found}`)
    }),
    { numRuns: 1000 },
  )
  database.close()
})
