import { setTimeout as delay } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import type { AuditRecord } from '#sdk/audit/audit-entry.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { sealedDatabase } from '#testing/databases/sealed-database.ts'
import { auditRow, outcomes } from '#testing/databases/workflow-stores.ts'
import type { SinkPositions } from './audit-sink-store.ts'

const times = (seconds = 60) => ({ now: new Date(), until: new Date(Date.now() + seconds * 1000) })
const old = new Date(Date.UTC(2020, 0, 1))
const idsOf = (records: readonly AuditRecord[]): string[] => records.flatMap(({ rows }) => rows.map(({ id }) => id))

/** The positions after the last read. */
function behind(records: readonly AuditRecord[], before: SinkPositions = new Map()): Map<number, number> {
  const positions = new Map(before)
  for (const { link } of records) positions.set(link.chain, Math.max(link.number, positions.get(link.chain) ?? 0))
  return positions
}

onEachDatabase('audit sinks', (freshUrl) => {
  const fresh = async () => sealedDatabase(await freshUrl())

  test('records of concurrent writers are read once, without gaps, in the order of their chain', async () => {
    const database = await fresh()
    const [one, two] = [await database.open(), await database.open()]
    let positions: SinkPositions = new Map()
    const seen: AuditRecord[] = []
    let writing = true
    const stopped = new AbortController()
    onTestFinished(() => stopped.abort())
    const reading = (async () => {
      while (!stopped.signal.aborted) {
        const isLast = !writing
        const found = await one.auditSinks.read(positions, 7)
        seen.push(...found)
        positions = behind(found, positions)
        if (found.length === 0 && isLast) return
        await delay(1)
      }
    })()
    for (let i = 0; i < 10; i++) {
      const appends = Array.from({ length: 20 }, (_, j) =>
        (j % 2 === 0 ? one : two).audit.append([auditRow(`${i}-${j}`), auditRow(`${i}-${j}-b`)]),
      )
      expect(outcomes(await Promise.allSettled(appends)).refused).toEqual([])
    }
    writing = false
    await reading
    expect(idsOf(seen).length).toBe(400)
    expect(new Set(idsOf(seen)).size).toBe(400)
    for (const records of Map.groupBy(seen, ({ link }) => link.chain).values()) {
      expect(records.map(({ link }) => link.number)).toEqual(records.map((_, i) => i + 1))
    }
    // A round begins after the previous one has ended.
    const rounds = idsOf(seen).map((id) => Number(id.split('-')[0]))
    expect(rounds).toEqual([...rounds].sort((a, b) => a - b))
  }, 60_000)

  test('records with long values are read a few at a time, and one that is too long alone', async () => {
    const { auditSinks: sinks, audit } = await (await fresh()).open()
    const lengths = [10, 400_000, 400_000, 400_000, 2_000_000, 10, 10]
    for (const [i, length] of lengths.entries())
      await audit.append([auditRow(`${i}`, { value: 'é'.repeat(length / 2) })])
    let positions: SinkPositions = new Map()
    const batches: string[] = []
    while (batches.length < 10) {
      const found = await sinks.read(positions, 200, 1_000_000)
      if (found.length === 0) break
      batches.push(idsOf(found).join(' '))
      positions = behind(found, positions)
    }
    expect(batches).toEqual(['0 1 2', '3', '4', '5 6'])
  })

  test('one owner feeds a sink at a time, and an owner that lost its claim moves nothing', async () => {
    const { auditSinks: sinks, audit } = await (await fresh()).open()
    await audit.append([auditRow('a'), auditRow('b', { subject: 'x' })])
    expect(await sinks.claim('siem', 'one', times())).toBeUndefined()
    await sinks.configure(new Map([['siem', 'beginning']]))
    expect(await sinks.claim('siem', 'one', times())).toEqual({ failures: 0, positions: new Map() })
    expect(await sinks.claim('siem', 'two', times())).toBeUndefined()
    expect(await sinks.lag('siem')).toEqual({ records: 2, oldest: auditRow('a').time })
    const positions = behind(await sinks.read(new Map(), 10))
    expect(await sinks.advance('siem', 'two', positions)).toBe(false)
    expect(await sinks.advance('siem', 'one', positions)).toBe(true)
    expect(await sinks.lag('siem')).toEqual({ records: 0 })
    await sinks.release('siem', 'one', { failures: 3, retryAt: new Date(Date.now() + 60_000) })
    expect(await sinks.claim('siem', 'two', times())).toBeUndefined()
    await sinks.configure(new Map())
    await sinks.configure(new Map([['siem', 'now']]))
    const later = { now: new Date(Date.now() + 61_000), until: new Date(Date.now() + 90_000) }
    expect(await sinks.claim('siem', 'two', later)).toEqual({ failures: 3, positions })
  })

  test('a sink may start with records that are written from now on', async () => {
    const { auditSinks: sinks, audit } = await (await fresh()).open()
    await audit.append([auditRow('a')])
    await sinks.configure(new Map([['siem', 'now']]))
    expect((await sinks.lag('siem')).records).toBe(0)
    await audit.append([auditRow('b')])
    const turn = await sinks.claim('siem', 'one', times())
    expect(idsOf(await sinks.read(turn?.positions ?? new Map(), 10))).toEqual(['b'])
  })

  test('pruning keeps what a configured sink has not received, unless unsent records may be removed', async () => {
    const { auditSinks: sinks, audit } = await (await fresh()).open()
    const row = (id: string) => auditRow(id, { subject: id, time: old })
    await audit.append([row('a'), row('b'), row('c')])
    await sinks.configure(new Map([['siem', 'beginning']]))
    await sinks.claim('siem', 'one', times())
    const first = await sinks.read(new Map(), 1)
    await sinks.advance('siem', 'one', behind(first))
    const before = new Date(Date.UTC(2021, 0, 1))
    expect(await audit.prune(before, { by: 'me' })).toEqual({ removed: 1, waiting: ['siem'] })
    expect(await audit.prune(before, { by: 'me' })).toEqual({ removed: 0, waiting: ['siem'] })
    expect((await sinks.lag('siem')).records).toBe(3)
    expect(await audit.prune(before, { by: 'me', unsent: true })).toEqual({ removed: 2, waiting: [] })
  })

  test('a sink that is set aside keeps its records, and is not added', async () => {
    const { auditSinks: sinks, audit } = await (await fresh()).open()
    await audit.append([auditRow('a', { time: old })])
    await sinks.configure(new Map([['siem', 'beginning']]))
    await sinks.configure(new Map(), ['siem', 'new'])
    expect(await audit.prune(new Date(Date.UTC(2021, 0, 1)), { by: 'me' })).toEqual({ removed: 0, waiting: ['siem'] })
  })

  test('a sink that is no longer configured does not delay pruning', async () => {
    const { auditSinks: sinks, audit } = await (await fresh()).open()
    await audit.append([auditRow('a', { time: old })])
    await sinks.configure(new Map([['siem', 'beginning']]))
    await sinks.configure(new Map())
    expect(await audit.prune(new Date(Date.UTC(2021, 0, 1)), { by: 'me' })).toEqual({ removed: 1, waiting: [] })
  })
})
