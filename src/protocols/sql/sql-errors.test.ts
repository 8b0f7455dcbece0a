import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import { postgresError } from '#protocols/sql/postgres.ts'
import { sqliteError } from '#protocols/sql/sqlite.ts'

const coded = (code: string, more: object = {}): Error => Object.assign(new Error('it said so'), { code, ...more })

test.each([
  ['23505', 'CONFLICT'],
  ['22001', 'BAD_REQUEST'],
  ['22P02', 'BAD_REQUEST'],
  ['23514', 'BAD_REQUEST'],
  ['54000', 'BAD_REQUEST'],
  ['23503', 'BAD_REQUEST'],
  ['23P01', 'CONFLICT'],
  ['54001', 'BAD_REQUEST'],
  ['42501', 'TARGET_FAILED'],
  ['42703', 'TARGET_FAILED'],
  ['40P01', 'TARGET_UNREACHABLE'],
  ['57P01', 'TARGET_UNREACHABLE'],
  ['08006', 'TARGET_UNREACHABLE'],
  ['28P01', 'TARGET_UNREACHABLE'],
  ['53100', 'TARGET_UNREACHABLE'],
  ['25006', 'TARGET_UNREACHABLE'],
  ['ECONNREFUSED', 'TARGET_UNREACHABLE'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'TARGET_UNREACHABLE'],
  ['57014', 'TARGET_TIMEOUT'],
])('PostgreSQL: %s is %s', (code, expected) => {
  const thrown = coded(code)
  expect(postgresError(thrown, 'foreign')).toMatchObject({ code: expected, cause: thrown })
})

test.each([
  ['23505', 'CONFLICT'],
  ['22021', 'BAD_REQUEST'],
  ['23503', 'TARGET_UNREACHABLE'],
  ['23514', 'INTERNAL'],
  ['28P01', 'INTERNAL'],
  ['42703', 'INTERNAL'],
  ['57014', 'TARGET_TIMEOUT'],
])('our own PostgreSQL: %s is %s', (code, expected) => {
  expect(postgresError(coded(code), 'own')).toMatchObject({ code: expected })
})

test('PostgreSQL: a syntax error is that of a value, unless it has a position in the statement', () => {
  expect(postgresError(coded('42601'), 'foreign')).toMatchObject({ code: 'BAD_REQUEST' })
  expect(postgresError(coded('42601', { position: '8' }), 'foreign')).toMatchObject({ code: 'TARGET_FAILED' })
  expect(postgresError(coded('42601'), 'own')).toMatchObject({ code: 'INTERNAL' })
})

test('PostgreSQL: the message of a missing value names its column', () => {
  expect(postgresError(coded('23502', { column: 'mail' }), 'foreign')).toMatchObject({
    code: 'BAD_REQUEST',
    message: 'column "mail" must have a value',
  })
})

test('SQLite: constraints, a full disk and a read-only file', () => {
  const database = new DatabaseSync(':memory:')
  database.exec(
    "create table p (id integer primary key, a text unique not null check (a <> 'x'), b integer references p)",
  )
  database.exec("insert into p values (1, 'a', null)")
  const failure = (statement: string): unknown => {
    try {
      database.exec(statement)
    } catch (error) {
      return sqliteError(error, 'foreign')
    }
    return undefined
  }
  expect(failure("insert into p values (2, 'a', null)")).toMatchObject({ code: 'CONFLICT' })
  expect(failure("insert into p values (1, 'b', null)")).toMatchObject({ code: 'CONFLICT' })
  expect(failure('insert into p values (2, null, null)')).toMatchObject({
    code: 'BAD_REQUEST',
    message: expect.stringMatching(/p\.a/),
  })
  expect(failure("insert into p values (2, 'x', null)")).toMatchObject({ code: 'BAD_REQUEST' })
  expect(failure("insert into p values (2, 'b', 99)")).toMatchObject({ code: 'BAD_REQUEST' })
  expect(failure('select nothing')).toMatchObject({ code: 'TARGET_FAILED' })
  database.exec('pragma max_page_count = 4')
  const filled = Array.from({ length: 100 }, (_, i) =>
    failure(`insert into p values (${i + 2}, 'v${i}' || hex(zeroblob(500)), null)`),
  ).find((failed) => failed !== undefined)
  expect(filled).toMatchObject({ code: 'TARGET_UNREACHABLE', message: expect.stringMatching(/is full/) })
  database.exec('pragma query_only = on')
  expect(failure("insert into p values (500, 'q', null)")).toMatchObject({
    code: 'TARGET_UNREACHABLE',
    message: expect.stringMatching(/cannot be written/),
  })
  database.close()
})

test('an error that is not from a database is returned unchanged', () => {
  const bug = new TypeError('x')
  expect(sqliteError(bug)).toBe(bug)
  const known = new GatewayError('NOT_FOUND', 'x')
  expect(postgresError(known)).toBe(known)
})
