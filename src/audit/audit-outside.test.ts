import { createSecretKey, randomBytes } from 'node:crypto'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { AuditAnchorConfig, AuditSinkConfig } from '#config/configuration/configuration.ts'
import { systemClock } from '#kernel/clock.ts'
import { newId } from '#kernel/ids.ts'
import { type Logger, silentLogger } from '#kernel/logger.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { AuditSink, SinkOutcome, SinkRecord } from '#sdk/audit/audit-sink.ts'
import { openStorage, type Storage } from '#server/composition/stores.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { AuditAnchors, type AuditMeter } from './audit-anchors.ts'
import { AuditSinks } from './audit-sinks.ts'

const accepted: SinkOutcome = { kind: 'accepted' }
const times = { idleMillis: 20, leaseMillis: 2000 }

const row = (subject: string): AuditEntry => ({
  id: newId(),
  time: new Date(),
  requestor: 'boss',
  subject,
  workflow: { id: 'run', name: 'join' },
  target: 'people',
  kind: 'entry',
  action: 'add',
  attribute: 'user',
})

/** Responds as configured, and records what it received. */
class FakeSink implements AuditSink {
  readonly taken: string[] = []
  readonly tried: string[][] = []
  readonly settleMillis: number
  answer: (attempt: number) => SinkOutcome | Promise<SinkOutcome> = () => accepted
  lost = false
  closed = false

  constructor(settleMillis = 0) {
    this.settleMillis = settleMillis
  }

  async send(records: readonly SinkRecord[]): Promise<SinkOutcome> {
    const subjects = records.flatMap(({ lines }) => lines.map((line) => String(JSON.parse(line).subject)))
    this.tried.push(subjects)
    const outcome = await this.answer(this.tried.length)
    if (outcome.kind === 'accepted') this.taken.push(...subjects)
    return outcome
  }

  hasLost(): boolean {
    const { lost } = this
    this.lost = false
    return lost
  }

  close(): void {
    this.closed = true
  }
}

const placed = { namespace: undefined, at: 'here' }
const configOf = (name: string, sink: AuditSink): AuditSinkConfig => ({
  ...placed,
  name,
  start: 'beginning',
  sink: { className: 'Fake', create: async () => sink },
})

async function setUp() {
  const dataFolder = temporaryFolder()
  const auditKeys = [{ id: 'k', key: createSecretKey(randomBytes(32)) }]
  const storage = openStorage({ dataFolder, clock: systemClock, log: silentLogger, auditKeys })
  onTestFinished(() => storage.close())
  await storage.audit.authenticate()
  const lags = new Map<string, readonly [records: number, seconds: number]>()
  const counts = { sent: 0, failed: 0 }
  const anchored: string[] = []
  const meter: AuditMeter = {
    sent: (_, records) => {
      counts.sent += records
    },
    failed: () => {
      counts.failed++
    },
    lag: (sink, records, seconds) => lags.set(sink, [records, seconds]),
    forget: (sink) => lags.delete(sink),
    anchored: (anchor, outcome) => anchored.push(`${anchor} ${outcome}`),
  }
  const logged: string[] = []
  const note = (message: string) => logged.push(message)
  const log: Logger = { ...silentLogger, info: note, warn: note }
  const parts = { store: storage.auditSinks, dataFolder, clock: systemClock, log, meter, times }
  const sinksOf = () => {
    const sinks = new AuditSinks(parts)
    onTestFinished(() => sinks.close())
    return sinks
  }
  return {
    storage,
    parts,
    sinksOf,
    lags,
    counts,
    logged,
    anchored,
    append: (...names: string[]) => appendAll(storage, names),
  }
}

async function appendAll({ audit }: Storage, names: readonly string[]): Promise<void> {
  for (const name of names) await audit.append([row(name)])
}

test('a sink gets all records in order; after a failure the same records come again, and the lag is reported', async () => {
  const { sinksOf, append, counts, lags, logged } = await setUp()
  const names = Array.from({ length: 450 }, (_, i) => `u${i}`)
  await append(...names)
  const sink = new FakeSink()
  sink.answer = (attempt) => (attempt === 2 ? { kind: 'failed', reason: '503' } : accepted)
  const sinks = sinksOf()
  await sinks.configure(new Map([['siem', configOf('siem', sink)]]))
  await vi.waitFor(() => expect(counts.failed).toBe(1), 10_000)
  expect(await sinks.health()).toEqual([{ name: 'siem', health: 'down', problem: '503' }])
  await sinks.look()
  expect(lags.get('siem')?.[0]).toBe(250)
  expect(sink.tried[1]?.[0]).toBe('u200')
  await vi.waitFor(() => expect(sink.taken).toEqual(names), 20_000)
  expect(sink.tried[2]).toEqual(sink.tried[1])
  expect(logged).toEqual([
    'an audit sink did not take records; they are sent again',
    'an audit sink takes records again',
  ])
  expect(await sinks.health()).toEqual([{ name: 'siem', health: 'up' }])
  await append('later')
  await vi.waitFor(() => expect(sink.taken.at(-1)).toBe('later'), 10_000)
  await vi.waitFor(async () => {
    await sinks.look()
    expect(lags.get('siem')).toEqual([0, 0])
  }, 10_000)
  await sinks.configure(new Map())
  expect([sink.closed, lags.size]).toEqual([true, 0])
})

test('unsettled records are sent again after the receiver disconnects, and by the next process', async () => {
  const { sinksOf, append, storage } = await setUp()
  await append('a', 'b')
  const sink = new FakeSink(60_000)
  const sinks = sinksOf()
  await sinks.configure(new Map([['siem', configOf('siem', sink)]]))
  await vi.waitFor(() => expect(sink.taken).toEqual(['a', 'b']), 10_000)
  expect((await storage.auditSinks.lag('siem')).records).toBe(2)
  sink.lost = true
  await vi.waitFor(() => expect(sink.taken).toEqual(['a', 'b', 'a', 'b']), 20_000)
  await append('c')
  await vi.waitFor(() => expect(sink.taken.at(-1)).toBe('c'), 10_000)
  await sinks.close()
  const next = new FakeSink(300)
  await sinksOf().configure(new Map([['siem', configOf('siem', next)]]))
  await vi.waitFor(() => expect(next.taken).toEqual(['a', 'b', 'c']), 10_000)
  await vi.waitFor(async () => expect((await storage.auditSinks.lag('siem')).records).toBe(0), 10_000)
  await new Promise((resolve) => setTimeout(resolve, 300))
  expect(next.taken).toEqual(['a', 'b', 'c'])
})

test('only one of two processes feeds a sink at a time', async () => {
  const { sinksOf, append } = await setUp()
  let [together, most] = [0, 0]
  const sink = new FakeSink()
  sink.answer = async () => {
    most = Math.max(most, ++together)
    await new Promise((resolve) => setTimeout(resolve, 3))
    together--
    return accepted
  }
  for (const sinks of [sinksOf(), sinksOf()]) await sinks.configure(new Map([['siem', configOf('siem', sink)]]))
  const names = Array.from({ length: 60 }, (_, i) => `u${i}`)
  for (const name of names) await append(name)
  await vi.waitFor(() => expect(sink.taken.length).toBeGreaterThanOrEqual(60), 20_000)
  expect(sink.taken).toEqual(names)
  expect(most).toBe(1)
})

test('an anchor goes to the log and to each place after the head moved, also at the end', async () => {
  const { storage, parts, anchored, append } = await setUp()
  const logged: unknown[] = []
  const errors: string[] = []
  const log: Logger = {
    ...silentLogger,
    info: (message, fields) => void logged.push([message, fields]),
    error: (message) => void errors.push(message),
  }
  const kept: string[] = []
  let works = false
  const sink: AuditSink = {
    settleMillis: 0,
    send: async (records) => {
      if (!works) return { kind: 'failed', reason: 'away' }
      kept.push(...records.flatMap(({ lines }) => lines))
      return accepted
    },
  }
  const config: AuditAnchorConfig = {
    ...placed,
    name: 'vault',
    intervalMillis: 10,
    sink: { className: 'Fake', create: async () => sink },
  }
  const anchors = new AuditAnchors({ ...parts, log, audit: storage.audit })
  onTestFinished(() => anchors.close())
  const broken = { className: 'Broken', create: () => Promise.reject(new Error('no such place')) }
  await anchors.configure(
    new Map([
      ['vault', config],
      ['broken', { ...config, name: 'broken', sink: broken }],
    ]),
  )
  const away = { name: 'broken', health: 'down', problem: 'no such place' }
  expect(await anchors.health()).toEqual([away, { name: 'vault', health: 'unchecked' }])
  await append('a', 'b')
  await vi.waitFor(() => expect(anchored).toContain('vault failed'), 10_000)
  expect(await anchors.health()).toEqual([away, { name: 'vault', health: 'down', problem: 'away' }])
  works = true
  await vi.waitFor(() => expect(kept).toHaveLength(1), 10_000)
  await vi.waitFor(async () => expect(await anchors.health()).toEqual([away, { name: 'vault', health: 'up' }]), 10_000)
  const before = anchored.length
  await new Promise((resolve) => setTimeout(resolve, 1500))
  expect([kept.length, anchored.length]).toEqual([1, before])
  await append('c')
  await anchors.close()
  expect(kept).toHaveLength(2)
  expect(logged).toEqual([['audit anchor', { anchor: JSON.parse(kept[1] ?? '') }]])
  const compared = await storage.audit.compareAnchors(kept.map((line) => JSON.parse(line)))
  expect(compared).toEqual({ compared: 2, pruned: 0, problems: [] })
  expect(errors).toEqual(['an audit anchor could not be created'])
})
