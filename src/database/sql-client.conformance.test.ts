import { expect, test } from 'vitest'
import type { SqlValue } from '#protocols/sql/sql-database.ts'
import { connectTo, onEachEmptyDatabase } from '#testing/databases/databases.ts'
import type { SqlClient, SqlQuery } from './sql-client.ts'

const statement = <R>(client: SqlClient, sql: string, ...params: SqlValue[]): SqlQuery<R> => ({
  sql: client.dialect === 'sqlite' ? sql : sql.replace(/\?/g, () => `$${++counter.value}`),
  params,
  name: undefined,
})
const counter = { value: 0 }

onEachEmptyDatabase('client', (freshUrl) => {
  /** A client with an empty table. */
  const open = async () => {
    const client = connectTo(await freshUrl())
    await client.migrate((_, runScript) => runScript('create table things (id text primary key, amount bigint)'))
    return client
  }
  const query = <R>(client: SqlClient, sql: string, ...params: SqlValue[]): SqlQuery<R> => {
    counter.value = 0
    return statement(client, sql, ...params)
  }
  const insert = (client: SqlClient, id: string, amount: SqlValue = 0) =>
    client.transaction((tx) => tx.run(query(client, 'insert into things (id, amount) values (?, ?)', id, amount)))
  const ids = async (client: SqlClient) =>
    (await client.query(query<{ id: string }>(client, 'select id from things order by id'))).map(({ id }) => id)

  test('only the transaction sees its writes before it ends', async () => {
    const client = await open()
    const seen = await client.transaction(async (tx) => {
      await tx.run(query(client, 'insert into things (id) values (?)', 'a'))
      const outside = await client.query(query<{ id: string }>(client, 'select id from things'))
      const inside = await tx.query(query<{ id: string }>(client, 'select id from things'))
      return [outside.length, inside.length]
    })
    expect(seen).toEqual([0, 1])
    expect(await ids(client)).toEqual(['a'])
  })

  test('a transaction that throws is undone and rejects with its error', async () => {
    const client = await open()
    const failing = client.transaction(async (tx) => {
      await tx.run(query(client, 'insert into things (id) values (?)', 'a'))
      throw new RangeError('mine')
    })
    await expect(failing).rejects.toThrow(RangeError)
    expect(await ids(client)).toEqual([])
  })

  test('concurrent transactions that fail are undone alone', async () => {
    const client = await open()
    const results = await Promise.allSettled(
      Array.from({ length: 40 }, (_, i) =>
        client.transaction(async (tx) => {
          await tx.run(query(client, 'insert into things (id) values (?)', `${i}`))
          if (i % 4 === 0) throw new RangeError('mine')
          if (i % 4 === 1) await tx.run(query(client, 'insert into things (id) values (?)', `${i}`))
          return i
        }),
      ),
    )
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(20)
    const survivors = Array.from({ length: 40 }, (_, i) => `${i}`).filter((_, i) => i % 4 > 1)
    expect(await ids(client)).toEqual(survivors.sort())
  })

  test('concurrent increments are all counted', async () => {
    const client = await open()
    await insert(client, 'a')
    await Promise.all(
      Array.from({ length: 50 }, () =>
        client.transaction((tx) => tx.run(query(client, 'update things set amount = amount + 1 where id = ?', 'a'))),
      ),
    )
    expect(await client.query(query(client, 'select amount from things'))).toEqual([{ amount: 50 }])
  })

  test('a uniqueness rule is a conflict', async () => {
    const client = await open()
    await insert(client, 'a')
    await expect(insert(client, 'a')).rejects.toMatchObject({ code: 'CONFLICT' })
  })

  test('a mistake in a statement is internal, and the next transaction is not affected', async () => {
    const client = await open()
    await expect(async () => client.query(query(client, 'select nonsense from nowhere'))).rejects.toMatchObject({
      code: 'INTERNAL',
    })
    await expect(client.transaction((tx) => tx.query(query(client, 'selec')))).rejects.toMatchObject({
      code: 'INTERNAL',
    })
    await insert(client, 'a')
    expect(await ids(client)).toEqual(['a'])
  })

  test('whole numbers are stored and read exactly', async () => {
    const client = await open()
    await insert(client, 'time', 1_900_000_000_000)
    await insert(client, 'negative', -5)
    await insert(client, 'none', null)
    await insert(client, 'large', 999_999_999_999_999_999n)
    const rows = await client.query(
      query<{ amount: unknown }>(client, "select amount from things where id <> 'large' order by id"),
    )
    expect(rows).toEqual([{ amount: -5 }, { amount: null }, { amount: 1_900_000_000_000 }])
    const exact = query<{ id: string }>(client, 'select id from things where amount = ?', 999_999_999_999_999_999n)
    expect(await client.query(exact)).toEqual([{ id: 'large' }])
  })

  test('rows come as lists on request', async () => {
    const client = await open()
    await insert(client, 'a', 7)
    const lists = { ...query<[string, number]>(client, 'select id, amount from things'), asLists: true }
    expect(await client.query(lists)).toEqual([['a', 7]])
  })

  test('a statement after the end of its transaction is rejected', async () => {
    const client = await open()
    const late = await client.transaction(async (tx) => tx)
    await expect(async () => late.run(query(client, 'delete from things'))).rejects.toMatchObject({ code: 'INTERNAL' })
  })

  test('closing waits for calls in progress and rejects later ones', async () => {
    const client = await open()
    const writing = insert(client, 'a')
    await client.close()
    await writing
    await expect(async () => client.query(query(client, 'select 1'))).rejects.toMatchObject({ code: 'SHUTTING_DOWN' })
    await expect(insert(client, 'b')).rejects.toMatchObject({ code: 'SHUTTING_DOWN' })
    await client.close()
  })
})
