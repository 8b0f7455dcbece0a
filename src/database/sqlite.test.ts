import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Worker } from 'node:worker_threads'
import { expect, onTestFinished, test, vi } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { openStorage } from '#server/composition/stores.ts'
import { damageTable } from '#testing/databases/damage.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import type { SqlQuery } from './sql-client.ts'
import { SqliteClient } from './sqlite.ts'

const query = <R>(sql: string): SqlQuery<R> => ({ sql, params: [], name: undefined })
const things = query<{ id: string }>('select id from things order by id')

function open(file: string): SqliteClient {
  const client = new SqliteClient(file)
  onTestFinished(() => client.close())
  return client
}

async function openTwice(): Promise<[SqliteClient, SqliteClient]> {
  const file = join(temporaryFolder(), 'test.db')
  const client = open(file)
  await client.migrate((_, runScript) =>
    runScript(`create table things (id text primary key); insert into things values ('a')`),
  )
  return [client, open(file)]
}

test.each([
  `insert into things values ('b') returning id`,
  'delete from things returning id',
  `with gone as (select id from things) update things set id = 'b' returning id`,
  'drop table things',
])('outside a transaction nothing is written: %s', async (text) => {
  const [client] = await openTwice()
  await expect(async () => client.query(query(text))).rejects.toMatchObject({ code: 'INTERNAL' })
  const within = client.transaction(async () => await client.query(query(text)))
  await expect(within).rejects.toThrow()
  expect(await client.query(things)).toEqual([{ id: 'a' }])
})

test('rows that another process has committed are read at once, even during a write', async () => {
  const [client, other] = await openTwice()
  expect(await client.query(things)).toHaveLength(1)
  await other.transaction((tx) => tx.run(query(`insert into things values ('b')`)))
  expect(await client.query(things)).toHaveLength(2)
  const whileWriting = await client.transaction(async (tx) => {
    await tx.run(query(`insert into things values ('c')`))
    return await client.query(things)
  })
  expect(whileWriting).toHaveLength(2)
  expect(await client.query(things)).toHaveLength(3)
  expect(await other.query(things)).toHaveLength(3)
})

test('a transaction that was rejected because it took too long can no longer write', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const [client] = await openTwice()
  const waited = Promise.withResolvers<void>()
  const began = Promise.withResolvers<void>()
  const stopped = Promise.withResolvers<unknown>()
  const late = client.transaction(async (tx) => {
    began.resolve()
    await waited.promise
    await Promise.try(() => tx.run(query(`insert into things values ('late')`))).then(stopped.resolve, stopped.resolve)
  })
  const rejected = expect(late).rejects.toMatchObject({ code: 'INTERNAL' })
  await began.promise
  await vi.advanceTimersByTimeAsync(60_000)
  await rejected
  await client.transaction(async (tx) => {
    waited.resolve()
    expect(await stopped.promise).toMatchObject({ code: 'INTERNAL' })
    await tx.run(query(`insert into things values ('b')`))
  })
  expect(await client.query(things)).toEqual([{ id: 'a' }, { id: 'b' }])
})

test('a full disk ends a transaction even if its function ignores the failure', async () => {
  const [client] = await openTwice()
  const ignoring = client.transaction(async (tx) => {
    await tx.query(query('pragma max_page_count = 10'))
    await Promise.try(() => tx.run(query(`insert into things values (hex(zeroblob(1000000)))`))).catch(() => {})
    await tx.run(query(`insert into things values ('alone')`))
  })
  const other = client.transaction(async (tx) => await tx.run(query(`insert into things values ('beside')`)))
  await expect(ignoring).rejects.toMatchObject({ code: 'INTERNAL' })
  await other
  expect(await client.query(things)).toEqual([{ id: 'a' }, { id: 'beside' }])
})

test('opening waits for a process that locks the whole file, as on closing', async () => {
  const file = join(temporaryFolder(), 'test.db')
  const holder = new Worker(
    `const { DatabaseSync } = require('node:sqlite')
    const database = new DatabaseSync(${JSON.stringify(file)})
    database.exec('create table things (id text); begin exclusive')
    require('node:worker_threads').parentPort.postMessage('held')
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300)
    database.exec('commit')
    database.close()`,
    { eval: true },
  )
  onTestFinished(async () => void (await holder.terminate()))
  await once(holder, 'message')
  expect(await open(file).query(things)).toEqual([])
})

test('damage is found by reading all of the file, and makes the storage unready', async () => {
  const dataFolder = temporaryFolder()
  const openAgain = () => openStorage({ dataFolder, clock: systemClock, log: silentLogger })
  const sound = openAgain()
  await sound.ready()
  expect(await sound.findDamage()).toBeUndefined()
  await sound.close()
  damageTable(join(dataFolder, 'gatehouse.db'), 'journal')
  const damaged = openAgain()
  onTestFinished(() => damaged.close())
  await damaged.ready()
  expect(await damaged.findDamage()).toMatch(/\w+: /)
  await expect(damaged.ready()).rejects.toThrow('the database is damaged: ')
})

test('a statement that meets a damaged page makes the storage unready', async () => {
  const file = join(temporaryFolder(), 'one.db')
  const filled = new DatabaseSync(file)
  filled.exec(`create table numbers (n text); with recursive s(i) as (select 1 union all select i + 1 from s where i < 20000)
    insert into numbers select i || 'a long text for a row' from s`)
  filled.close()
  damageTable(file, 'numbers')
  const client = open(file)
  expect(client.damage).toBeUndefined()
  const read = query('select sum(length(n)) from numbers')
  expect(() => client.query(read)).toThrow(expect.objectContaining({ code: 'TARGET_UNREACHABLE' }))
  expect(client.damage).toBe('database disk image is malformed')
})

test('a file of another kind is named, with what to do', () => {
  const file = join(temporaryFolder(), 'gatehouse.db')
  writeFileSync(file, 'not a database at all'.repeat(1000))
  expect(() => new SqliteClient(file)).toThrow(
    `${file} cannot be used: file is not a database. Move it away and restore a backup with "gatehouse restore"`,
  )
})

test('a full disk is reported with the file', async () => {
  const file = join(temporaryFolder(), 'gatehouse.db')
  const client = new SqliteClient(file)
  onTestFinished(() => client.close())
  await client.migrate((_, runScript) => runScript('create table numbers (n text); pragma max_page_count = 4'))
  const insert = query('insert into numbers values (hex(zeroblob(50000)))')
  await expect(client.transaction((tx) => tx.run(insert))).rejects.toMatchObject({
    code: 'TARGET_UNREACHABLE',
    message: `the database ${file} is full: database or disk is full. Free some space on its disk`,
  })
})
