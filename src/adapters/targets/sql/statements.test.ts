import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { bindStatement, parseStatement } from './statements.ts'

const bind = (text: string, dialect: 'sqlite' | 'postgres' = 'postgres') =>
  bindStatement(parseStatement(text), dialect, (name) => `<${name}>`)

test.each<[string, string, string[]]>([
  ['select :a, :b, :a', 'select $1, $2, $3', ['<a>', '<b>', '<a>']],
  ['select :a::text;', 'select $1::text', ['<a>']],
  [`select ':a', ":b", 'it''s :c', :d`, `select ':a', ":b", 'it''s :c', $1`, ['<d>']],
  [`select e'\\':a', :b`, `select e'\\':a', $1`, ['<b>']],
  ['select 1 -- :a ; :b\n, :c', 'select 1 -- :a ; :b\n, $1', ['<c>']],
  ['select /* :a ; */ :b', 'select /* :a ; */ $1', ['<b>']],
  ['select $$ :a ; $$, $x$ :b $$ $x$, :c', 'select $$ :a ; $$, $x$ :b $$ $x$, $1', ['<c>']],
  ["select ';'", "select ';'", []],
])('%s', (text, sql, params) => {
  expect(bind(text)).toEqual({ sql, params })
})

test('several statements, none, and one that is too long are rejected', () => {
  for (const text of ['select 1; select 2', ';;', '', ' ; ', `select '${'x'.repeat(20_000)}'`]) {
    expect(() => parseStatement(text), text.slice(0, 20)).toThrow(/statement|longer/)
  }
})

test('a value is never part of the text', () => {
  const database = new DatabaseSync(':memory:')
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (a, b) => {
      fc.pre(!`${a}${b}`.includes('\0') && a.isWellFormed() && b.isWellFormed())
      const places = new Map([
        ['a', a],
        ['b', b],
      ])
      const { sql, params } = bindStatement(
        parseStatement("select :b as b, ':a' as c, :a as a"),
        'sqlite',
        (name) => places.get(name) ?? null,
      )
      expect({ ...database.prepare(sql).get(...params) }).toEqual({ a, b, c: ':a' })
    }),
  )
  database.close()
})
