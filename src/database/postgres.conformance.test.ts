import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { silentLogger } from '#kernel/logger.ts'
import { freshSchema, postgresUrl, runSql } from '#testing/databases/postgres.ts'
import { PostgresClient } from './postgres.ts'
import type { DatabaseTransaction, SqlQuery } from './sql-client.ts'

const query = (sql: string, ...params: string[]): SqlQuery<{ id: string; amount: number; pid: number }> => ({
  sql,
  params,
  name: undefined,
})

async function open() {
  const url = await freshSchema()
  const client = new PostgresClient(url, silentLogger)
  onTestFinished(() => client.close())
  await client.migrate((_, runScript) =>
    runScript("create table things (id text primary key, amount bigint); insert into things values ('a', 0), ('b', 0)"),
  )
  return { url, client }
}

const ownProcess = query('select pg_backend_pid() as pid')

describe.skipIf(postgresUrl() === '')('PostgreSQL', () => {
  test('a connection that died while it was idle is replaced', async () => {
    const { url, client } = await open()
    const [first] = await client.query(ownProcess)
    await runSql(url, `select pg_terminate_backend(${first?.pid})`)
    const [second] = await client.query(ownProcess)
    expect(second?.pid).not.toBe(first?.pid)
  })

  test('a connection that dies in a transaction undoes it, and the error suggests a retry', async () => {
    const { url, client } = await open()
    const dying = client.transaction(async (tx) => {
      await tx.run(query("update things set amount = 1 where id = 'a'"))
      const [own] = await tx.query(ownProcess)
      await runSql(url, `select pg_terminate_backend(${own?.pid})`)
      await tx.run(query("update things set amount = 2 where id = 'a'"))
    })
    await expect(dying).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE', retryAfter: 5 })
    expect(await client.query(query('select id, amount from things order by id'))).toEqual([
      { id: 'a', amount: 0 },
      { id: 'b', amount: 0 },
    ])
  })

  test('a connection that dies before the commit undoes statements that were only sent', async () => {
    const { url, client } = await open()
    const dying = client.transaction(async (tx) => {
      const [own] = await tx.query(ownProcess)
      tx.send(query("insert into things values ('c', 0)"))
      await runSql(url, `select pg_terminate_backend(${own?.pid})`)
      tx.send(query("insert into things values ('d', 0)"))
    })
    await expect(dying).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
    expect(await client.query(query('select id from things order by id'))).toEqual([{ id: 'a' }, { id: 'b' }])
  })

  test('a connection to a server that became read-only is replaced', async () => {
    const { client } = await open()
    const insert = query("insert into things values ('c', 0)")
    await client.transaction((tx) => tx.run(query('set session characteristics as transaction read only')))
    await expect(client.transaction((tx) => tx.run(insert))).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
    expect(await client.transaction((tx) => tx.run(insert))).toBe(1)
  })

  test('two transactions that deadlock both succeed', async () => {
    const { client } = await open()
    const add = (tx: DatabaseTransaction, id: string) =>
      tx.run(query('update things set amount = amount + 1 where id = $1', id))
    const both = (first: string, second: string) =>
      client.transaction(async (tx) => {
        await add(tx, first)
        await delay(50)
        await add(tx, second)
      })
    await Promise.all([both('a', 'b'), both('b', 'a')])
    const rows = await client.query(query('select amount from things'))
    expect(rows.map(({ amount }) => amount)).toEqual([2, 2])
  })

  test('a failure of a statement that was only sent undoes the transaction, and is its error', async () => {
    const { client } = await open()
    const insert = (id: string) => query('insert into things values ($1, 1)', id)
    const sentLast = client.transaction(async (tx) => {
      await tx.run(insert('c'))
      tx.send(insert('a'))
    })
    await expect(sentLast).rejects.toMatchObject({ code: 'CONFLICT' })
    const followed = client.transaction(async (tx) => {
      tx.send(insert('a'))
      tx.send(insert('c'))
      await tx.run(insert('d'))
    })
    await expect(followed).rejects.toMatchObject({ code: 'CONFLICT' })
    const rows = await client.query(query('select id from things order by id'))
    expect(rows.map(({ id }) => id)).toEqual(['a', 'b'])
    await client.transaction(async (tx) => tx.send(insert('c')))
    expect(await client.query(query("select amount from things where id = 'c'"))).toEqual([{ amount: 1 }])
  })

  test('transactions whose sent statements deadlock both succeed', async () => {
    const { client } = await open()
    const add = (id: string) => query('update things set amount = amount + 1 where id = $1', id)
    const both = (first: string, second: string) =>
      client.transaction(async (tx) => {
        await tx.run(add(first))
        await delay(50)
        tx.send(add(second))
      })
    await Promise.all([both('a', 'b'), both('b', 'a')])
    const rows = await client.query(query('select amount from things'))
    expect(rows.map(({ amount }) => amount)).toEqual([2, 2])
  })

  test('the figures of the pool say how many wait for a connection', async () => {
    const { client } = await open()
    const { max } = client.pool
    const [begun, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let running = 0
    const work = (): Promise<void> =>
      client.transaction(async (tx) => {
        await tx.query(ownProcess)
        if (++running === max) begun.resolve()
        await end.promise
      })
    const all = Array.from({ length: max + 2 }, work)
    await begun.promise
    expect(client.pool).toEqual({ max: 16, total: 16, idle: 0, waiting: 2 })
    end.resolve()
    await Promise.all(all)
    expect(client.pool).toMatchObject({ idle: client.pool.total, waiting: 0 })
  })

  test("a text that PostgreSQL can't store is a bad request", async () => {
    const { client } = await open()
    const wrong = client.transaction((tx) => tx.run(query('insert into things (id) values ($1)', 'a\0b')))
    await expect(wrong).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  })
})
