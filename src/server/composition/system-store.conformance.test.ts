import { expect, test } from 'vitest'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { openStores } from '#testing/databases/stores.ts'

const minute = 60_000
const started = new Date(Date.UTC(2020, 0, 1))

onEachDatabase('the system', (freshUrl) => {
  const open = async () => openStores(await freshUrl())

  test('replicas are listed while they are seen', async () => {
    const { one, two, sql } = await open()
    await one.system.beat({ name: 'a', version: '1', started })
    await two.system.beat({ name: 'b', version: '2', started })
    await one.system.beat({ name: 'a', version: '1', started })
    expect(await one.system.replicas(minute)).toEqual([
      { name: 'a', version: '1', started, seen: expect.any(Date) },
      { name: 'b', version: '2', started, seen: expect.any(Date) },
    ])
    await sql("update replicas set seen = seen - 120000 where name = 'a'")
    expect((await two.system.replicas(minute)).map(({ name }) => name)).toEqual(['b'])
    expect((await two.system.replicas(3 * minute)).map(({ name }) => name)).toEqual(['a', 'b'])
    await two.system.forget('b')
    expect((await one.system.replicas(3 * minute)).map(({ name }) => name)).toEqual(['a'])
  })

  test('a replica that was not seen for a day is forgotten', async () => {
    const { one, sql } = await open()
    await one.system.beat({ name: 'old', version: '1', started })
    await sql(`update replicas set seen = seen - ${25 * 60 * minute}`)
    await one.system.beat({ name: 'new', version: '1', started })
    expect((await one.system.replicas(100 * 60 * minute)).map(({ name }) => name)).toEqual(['new'])
  })

  test('after a restore all logins end', async () => {
    const { one, sql } = await open()
    await one.system.beat({ name: 'of the backup', version: '1', started })
    const rows = {
      sessions: `(id, application, user_id, user_key, data, created, touched, idle_seconds, expires)
        values ('s', 'portal', 'ada', 'ada', '{}', 1, 1, 1, 9000000000000)`,
      session_marks: `(mark, public_id, expires) values ('m', 'p', 9000000000000)`,
      logins: `(id, browser, host, data, version, created, expires) values ('l', 'b', 'h', 'd', 1, 1, 9000000000000)`,
      issuer_records: `(issuer, model, id, data, version, expires) values ('i', 'RefreshToken', 'r', 'd', 1, 9000000000000)`,
    }
    for (const [table, values] of Object.entries(rows)) await sql(`insert into ${table} ${values}`)
    expect(await one.system.endLogins()).toEqual({ sessions: 1, issued: 1 })
    for (const table of Object.keys(rows)) expect(await sql(`select * from ${table}`), table).toEqual([])
    expect(await one.system.replicas(minute)).toEqual([])
    expect(await one.system.endLogins()).toEqual({ sessions: 0, issued: 0 })
  })

  test('the database has a kind and a size', async () => {
    const { one, dialect } = await open()
    expect(one.system.kind).toBe(dialect)
    expect(await one.system.bytes()).toBeGreaterThan(10_000)
  })
})
