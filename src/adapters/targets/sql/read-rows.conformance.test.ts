import { expect, test } from 'vitest'
import { hasQueries, type QueryTarget } from '#sdk/target/query-target.ts'
import { onEachEmptyDatabase } from '#testing/databases/databases.ts'
import { openApplication, runOn } from '#testing/databases/sql-schema.ts'

onEachEmptyDatabase('reading by a statement', (freshUrl) => {
  async function open(): Promise<{ readonly target: QueryTarget; readonly url: string }> {
    const url = await freshUrl()
    const target = await openApplication(url)
    if (!hasQueries(target)) throw new Error('the target cannot be asked by a statement')
    await runOn(url, 'create table shops (name text, number integer, closed text)')
    await runOn(url, `insert into shops values ('b', 2, null), ('a', 1, 'x'), ('it''s', 3, '')`)
    return { target, url }
  }
  const plain = (rows: readonly object[]) => rows.map((row) => ({ ...row }))

  test('returns the first rows, every column as text', async () => {
    const { target } = await open()
    const rows = await target.readRows('select name, number, closed from shops order by name -- all;', {}, 2)
    expect(plain(rows)).toEqual([
      { name: 'a', number: '1', closed: 'x' },
      { name: 'b', number: '2', closed: '' },
    ])
  })

  test('binds values, which are never part of the statement', async () => {
    const { target } = await open()
    const by = async (name: string) =>
      plain(await target.readRows('select number from shops where name = :name', { name }, 10))
    expect(await by("it's")).toEqual([{ number: '3' }])
    expect(await by("a' or '1'='1")).toEqual([])
    await expect(target.readRows('select :other', { name: 'x' }, 1)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    await expect(target.readRows('select :constructor', {}, 1)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  })

  test.each([
    "insert into shops values ('c', 4, null)",
    'delete from shops',
    'delete from shops returning name',
    'with gone as (delete from shops returning name) select name from gone',
    'select 1; delete from shops',
    'drop table shops',
    'select 1) as a; delete from shops; select * from (select 1',
    'nonsense',
    '',
  ])('writes nothing: %s', async (statement) => {
    const { target } = await open()
    await expect(target.readRows(statement, {}, 10)).rejects.toMatchObject({ code: 'TARGET_FAILED' })
    expect(await target.readRows('select name from shops', {}, 10)).toHaveLength(3)
  })

  test('leaves nothing for those who use the connection next', async () => {
    const url = await freshUrl()
    if (url.startsWith('sqlite:')) return
    const target = await openApplication(url, { maxCons: '1' })
    if (!hasQueries(target)) throw new Error('the target cannot be asked by a statement')
    const read = async (statement: string) => plain(await target.readRows(statement, {}, 10))
    const usual = await read(
      `select current_setting('search_path') as path, current_setting('statement_timeout') as time`,
    )
    await read(
      `select set_config('search_path', 'nowhere', false) as a, set_config('statement_timeout', '0', false) as b`,
    )
    await read(`select set_config('default_transaction_read_only', 'on', false), pg_advisory_lock(7)`)
    await expect(read('select 1 / (select 0 from pg_advisory_lock(8))')).rejects.toThrow(/division/)
    expect(
      await read(`select current_setting('search_path') as path, current_setting('statement_timeout') as time`),
    ).toEqual(usual)
    expect(await read(`select objid from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()`)).toEqual([])
    expect(await runOn(url, `select objid from pg_locks where locktype = 'advisory' and objid in (7, 8)`)).toEqual([])
  })

  test('a function that would write fails the statement, and not the database', async () => {
    const { target, url } = await open()
    if (url.startsWith('sqlite:')) return
    await runOn(url, 'create sequence numbers')
    await expect(target.readRows(`select nextval('numbers')`, {}, 10)).rejects.toMatchObject({ code: 'TARGET_FAILED' })
  })

  test('two columns of one name are refused, since a row would have one', async () => {
    const { target, url } = await open()
    if (url.startsWith('sqlite:')) return
    const joined = 'select a.name, b.name, b.number from shops a join shops b on a.number < b.number'
    await expect(target.readRows(joined, {}, 10)).rejects.toThrow(/two columns are named "name"/)
    const named = joined.replace('b.name', 'b.name as other')
    expect(Object.keys((await target.readRows(named, {}, 10))[0] ?? {})).toEqual(['name', 'other', 'number'])
  })

  test('a row that is too large fails the statement, and is not read into memory', async () => {
    const url = await freshUrl()
    if (url.startsWith('sqlite:')) return
    const target = await openApplication(url, { timeoutMillis: '60000' })
    if (!hasQueries(target)) throw new Error('the target cannot be asked by a statement')
    await expect(target.readRows(`select repeat('x', 80000000) as text`, {}, 10)).rejects.toMatchObject({
      code: 'BAD_REQUEST',
      message: expect.stringMatching(/returns more than \d+ bytes/),
    })
    const most = `select repeat('x', 3000) as text from generate_series(1, 20000)`
    expect(await target.readRows(most, {}, 20_000)).toHaveLength(20_000)
  }, 120_000)
})
