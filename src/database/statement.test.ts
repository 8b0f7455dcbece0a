import { expect, test } from 'vitest'
import { memoryDatabase } from '#testing/databases/memory-database.ts'
import { columns, inserted, ListStatement, RowInsert, statement } from './statement.ts'

test('each placeholder becomes a separate parameter, and quoted texts and casts stay', () => {
  const find = statement<{ id: string; now: number }>(
    `select ':id' as ":now", 1::bigint from t where id = :id and a < :now and b > :now limit :now`,
  )
  expect(find.query('postgres', { id: 'x', now: 5 })).toMatchObject({
    sql: `select ':id' as ":now", 1::bigint from t where id = $1 and a < $2 and b > $3 limit $4`,
    params: ['x', 5, 5, 5],
  })
  expect(find.query('sqlite', { id: 'x', now: 5 }).sql).toBe(
    `select ':id' as ":now", 1::bigint from t where id = ? and a < ? and b > ? limit +?`,
  )
})

test('the dialects write their own phrases', () => {
  const lock = statement((on) => `select 1 ${on.forUpdate}`)
  expect([lock.query('sqlite', {}).sql, lock.query('postgres', {}).sql]).toEqual(['select 1 ', 'select 1 for update'])
  expect(lock.query('sqlite', {}).name).not.toBe(lock.query('postgres', {}).name)
})

test('columns and properties map to each other', () => {
  expect(columns(['id', 'runId'], 's')).toBe('s.id, s.run_id as "runId"')
  expect(inserted(['id', 'runId'])).toBe('(id, run_id) values (:id, :runId)')
})

test('lists of any length are inserted and found by few statements', async () => {
  const database = memoryDatabase()
  const rows = Array.from({ length: 100 }, (_, i) => ({ mark: 'm', publicId: `p${i}`, expires: i }))
  const insert = new RowInsert<(typeof rows)[number]>('session_marks', ['mark', 'publicId', 'expires'])
  const find = new ListStatement<{ mark: string }, string, { expires: number }>(
    'select expires from session_marks where mark = :mark and public_id in (:list)',
  )
  await database.transaction(async (tx) => insert.run(tx, rows))
  for (const size of [0, 1, 9, 65, 100]) {
    const wanted = rows.slice(0, size).map(({ publicId }) => publicId)
    const found = await find.all(database, { mark: 'm' }, wanted)
    expect(found.map(({ expires }) => expires).sort((a, b) => a - b)).toEqual(
      rows.slice(0, size).map((row) => row.expires),
    )
  }
})
