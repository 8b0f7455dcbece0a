import { describe, expect, test } from 'vitest'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { migratedSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { openStores } from '#testing/databases/stores.ts'

/** Slow enough that nothing comes back during a test. */
const rate = { burst: 5, perMinute: 0.1 }

onEachDatabase('rate limits', (freshUrl) => {
  /** SQLite has one process. */
  const open = async () => {
    const { one, two, dialect } = await openStores(await freshUrl())
    return dialect === 'postgres' ? [one.rateLimits, two.rateLimits] : [one.rateLimits, one.rateLimits]
  }

  test('all processes together let one burst of concurrent calls through', async () => {
    const [one, two] = await open()
    const calls = Array.from({ length: 24 }, (_, i) => (i % 2 === 0 ? one : two)?.take('logins', 'a', rate))
    const waits = await Promise.all(calls)
    expect(waits.filter((wait) => wait === undefined)).toHaveLength(5)
    for (const wait of waits.filter((wait) => wait !== undefined)) {
      expect(wait).toBeGreaterThan(590 - 600 * 0.1)
      expect(wait).toBeLessThanOrEqual(600)
    }
  })

  test('keys and limits are counted separately, whatever the text of a key is', async () => {
    const [one, two] = await open()
    const once = { ...rate, burst: 1 }
    const long = 'x'.repeat(100_000)
    for (const [limit, key] of [
      ['logins', 'a'],
      ['logins', 'A'],
      ['links', 'a'],
      ['logins', '\0\ud800'],
      ['logins', long],
    ]) {
      expect(await one?.take(limit ?? '', key ?? '', once)).toBeUndefined()
      expect(await two?.take(limit ?? '', key ?? '', once)).toBeGreaterThan(0)
    }
  })

  test('a call pays for earlier ones, as far as the burst goes', async () => {
    const [one, two] = await open()
    expect(await one?.take('tokens', 'a', rate, 4)).toBeUndefined()
    expect(await two?.take('tokens', 'a', rate, 4)).toBeUndefined()
    expect(await one?.take('tokens', 'a', rate)).toBeLessThanOrEqual(600)
    expect(await one?.take('tokens', 'b', rate, 100)).toBeUndefined()
    expect(await two?.take('tokens', 'b', rate)).toBeLessThanOrEqual(600)
  })

  test('pruning forgets nothing that counts', async () => {
    const [one, two] = await open()
    for (let i = 0; i < 5; i++) await one?.take('logins', 'a', rate)
    await two?.prune()
    expect(await two?.take('logins', 'a', rate)).toBeGreaterThan(0)
  })
})

describe.skipIf(postgresUrl() === '')('rate limits on PostgreSQL', () => {
  const open = async () => {
    const { one, two, sql } = await openStores(await migratedSchema())
    const [first, second] = [one.rateLimits, two.rateLimits]
    const shift = (millis: number) => sql(`update rate_limits set full_at = full_at - ${millis}`)
    const keys = async () => Number((await sql('select count(*) as keys from rate_limits'))[0]?.['keys'])
    return { first, second, sql, shift, keys }
  }

  test('calls come back at the rate, up to the burst', async () => {
    const { first, second, shift } = await open()
    for (let i = 0; i < 5; i++) await first.take('logins', 'a', rate)
    await shift(2 * 600_000 + 1000)
    const waits = []
    for (let i = 0; i < 3; i++) waits.push(await second.take('logins', 'a', rate))
    expect(waits).toEqual([undefined, undefined, expect.any(Number)])
    await shift(100 * 600_000)
    let free = 0
    while ((await first.take('logins', 'a', rate)) === undefined) free++
    expect(free).toBe(5)
  })

  test('after a refusal the process does not ask the database until a call may continue', async () => {
    const { first, second, shift } = await open()
    for (let i = 0; i < 6; i++) await first.take('logins', 'a', rate)
    await shift(100 * 600_000)
    expect(await first.take('logins', 'a', rate)).toBeGreaterThan(0)
    expect(await second.take('logins', 'a', rate)).toBeUndefined()
  })

  test('a clock of the database that is set back empties a bucket, and no more', async () => {
    const { first, second, shift } = await open()
    for (let i = 0; i < 5; i++) await first.take('logins', 'a', rate)
    await shift(-2 * 86_400_000)
    expect(await first.take('logins', 'a', rate)).toBeUndefined()
    expect(await second.take('logins', 'a', rate)).toBeLessThanOrEqual(600)
  })

  test('a call that cannot be counted does not continue', async () => {
    const { first, sql } = await open()
    await sql('alter table rate_limits rename to away')
    await expect(first.take('logins', 'a', rate)).rejects.toThrow()
    await sql('alter table away rename to rate_limits')
    expect(await first.take('logins', 'a', rate)).toBeUndefined()
  })

  test('a flood of keys does not grow the table without end', async () => {
    const { first, sql, shift, keys } = await open()
    for (let i = 0; i < 5; i++) await first.take('logins', 'a', rate)
    await sql("insert into rate_limits select 'key ' || n, 1e15 - n from generate_series(1, 3000) n")
    await first.prune(100)
    expect(await keys()).toBe(100)
    expect(await sql("select full_at from rate_limits where key = 'key 1'")).toHaveLength(1)
    await shift(1e15)
    await first.prune(100)
    expect(await keys()).toBe(0)
  })
})
