import { describe, expect, onTestFinished, test } from 'vitest'
import { PostgresClient } from '#database/postgres.ts'
import type { DatabaseTransaction } from '#database/sql-client.ts'
import { storedIdentity } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import { silentLogger } from '#kernel/logger.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { migratedSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { openStores } from '#testing/databases/stores.ts'
import {
  auditRow,
  commitOf,
  minute,
  newApproval,
  newRun,
  outcomes,
  shown,
  stepRecord,
} from '#testing/databases/workflow-stores.ts'
import { runHead } from '#testing/workflows/run-head.ts'
import type { NewTimer } from '#workflows/timers/timer.ts'
import { CommitBatches } from './commit-batches.ts'
import { commitStep, commitTogether, type NewRun } from './run-commit.ts'

onEachDatabase('steps that are committed at the same time', (freshUrl) => {
  const effects = (id: string) => ({
    steps: [stepRecord(1)],
    audit: [auditRow(`audit of ${id}`, { workflow: { id, name: 'create-user' } })],
  })
  const claimed = async (count: number) => {
    const stores = await openStores(await freshUrl())
    const { runs } = stores.one
    for (let i = 0; i < count; i++) await runs.start(newRun(`run-${i}`))
    return { ...stores, runs, claims: await runs.claim('worker', count, minute) }
  }

  test('share transactions, and each has all its effects', async () => {
    const { runs, claims, one, sql, dialect } = await claimed(40)
    const ends = { state: 'completed' } as const
    const goesOn = { state: 'running', leaseMillis: minute } as const
    const states = await Promise.all(
      claims.map((run, i) => runs.commit(commitOf(run, i % 2 === 0 ? ends : goesOn, effects(run.head.id)))),
    )
    expect(states).toEqual(claims.map((_, i) => (i % 2 === 0 ? 'completed' : 'running')))
    for (const [i, { head, fence }] of claims.entries()) {
      const { id } = head
      const run = await shown(runs, id)
      expect(run).toMatchObject({ state: i % 2 === 0 ? 'completed' : 'running', fence, data: { step: 1 } })
      expect(run.ended !== undefined).toBe(i % 2 === 0)
      expect((await runs.steps(id)).length).toBe(1)
    }
    expect(await one.audit.verify()).toMatchObject({ checked: 40, problems: [] })
    if (dialect === 'postgres') {
      const [row] = await sql('select count(distinct cast(xmin as text)) as count from steps')
      expect(Number(row?.['count'])).toBeLessThan(20)
    }
    // Those that go on keep their claim.
    const others = claims.filter((_, i) => i % 2 !== 0)
    await Promise.all(others.map((run) => runs.commit(commitOf(run, ends))))
    expect((await runs.figures()).running).toBe(0)
  })

  test('a void claim and a cancelled run have their own result, and the others are committed', async () => {
    const { runs, claims, one } = await claimed(12)
    const [lost, cancelled] = claims
    if (lost === undefined || cancelled === undefined) throw new Error('nothing was claimed')
    const cancellation = { by: 'admin', at: new Date(), reason: 'not needed' }
    const request = { id: cancelled.head.id, fence: cancelled.fence, effects: {}, cancellation, onlyUntouched: false }
    await runs.cancel({ ...request, outcome: 'cancelled' })
    const commits = claims.map((run) => {
      const claim = run === lost ? { ...run, fence: run.fence + 1 } : run
      const next = run === cancelled ? { state: 'running', leaseMillis: minute } : { state: 'completed' }
      return runs.commit(commitOf(claim, next as Parameters<typeof commitOf>[1], effects(run.head.id)))
    })
    const settled = await Promise.allSettled(commits)
    expect(outcomes(settled)).toEqual({ done: 11, refused: ['VERSION_MISMATCH'] })
    expect(settled[1]).toEqual({ status: 'fulfilled', value: 'cancelled' })
    expect((await shown(runs, lost.head.id)).state).toBe('running')
    expect((await runs.steps(lost.head.id)).length).toBe(0)
    expect((await shown(runs, cancelled.head.id)).state).toBe('cancelled')
    expect((await runs.figures()).running).toBe(1)
    expect(await one.audit.verify()).toMatchObject({ checked: 11, problems: [] })
  })

  test('of two processes that commit the same claims in opposite order, one commits each', async () => {
    const { runs, claims, one, two, sql } = await claimed(12)
    const grant = (id: string, name: string) =>
      ({ id, target: 'people', subject: 'bob', kind: 'group', name, expires: { inMillis: minute } }) as const
    const commit = ({ runs }: typeof one, run: (typeof claims)[number], by: string, i: number) => {
      const grants = [grant(`${by} ${i}`, `group${i % 3}`)]
      const audit = [auditRow(`${by} ${run.head.id}`, { workflow: { id: run.head.id, name: 'create-user' } })]
      return runs.commit(commitOf(run, { state: 'completed' }, { steps: [stepRecord(1)], grants, audit }))
    }
    const settled = await Promise.allSettled([
      ...claims.map((run, i) => commit(one, run, 'one', i)),
      ...claims.toReversed().map((run, i) => commit(two, run, 'two', i)),
    ])
    expect(outcomes(settled)).toEqual({ done: 12, refused: Array(12).fill('VERSION_MISMATCH') })
    for (const { id } of claims.map(({ head }) => head)) expect((await runs.steps(id)).length).toBe(1)
    expect((await sql("select id from grants where state = 'active'")).length).toBe(3)
    expect(await one.audit.verify()).toMatchObject({ checked: 12, problems: [] })
  })

  test('runs that begin to wait have their approvals, timers, grants and mails, and keep their secrets', async () => {
    const { runs, claims, one, sql } = await claimed(6)
    const timer = (run: string): NewTimer => ({ id: `timer of ${run}`, kind: 'wait', run, due: { inMillis: minute } })
    const grant = (run: string) =>
      ({ id: `grant of ${run}`, target: 'people', subject: run, kind: 'group', name: 'vault', run }) as const
    const mail = (run: string) => ({ id: `mail of ${run}`, run, recipient: 'a@x.org', subject: 'Hello', text: 'text' })
    await Promise.all(
      claims.map((run) => {
        const { id } = run.head
        const rows = {
          ...effects(id),
          timers: [timer(id)],
          grants: [{ ...grant(id), expires: { inMillis: minute } }],
          mails: [mail(id)],
        }
        const next = { state: 'waiting', approval: newApproval(`approval of ${id}`) } as const
        return runs.commit({ ...commitOf(run, next, rows), secret: `secret of ${id}` })
      }),
    )
    for (const { head, fence } of claims) {
      const { id } = head
      const run = await runs.getWhole(id)
      expect(run).toMatchObject({ state: 'waiting', fence, secret: `secret of ${id}` })
      expect([run?.worker, run?.ended]).toEqual([undefined, undefined])
      expect(await one.approvals.get(`approval of ${id}`)).toMatchObject({ run: { id }, state: 'open' })
      expect(await one.grants.get(`grant of ${id}`)).toMatchObject({ state: 'active', subject: id })
    }
    // Those of the approvals, and one of each run.
    expect((await sql('select id from timers')).length).toBe(12)
    expect((await sql('select id from mails')).length).toBe(6)
    expect(await one.audit.verify()).toMatchObject({ checked: 6, problems: [] })
  })

  test('the next run of a subject can be claimed when the one before it ends or waits', async () => {
    const { runs, claims } = await claimed(4)
    for (const { subject } of claims.map(({ head }) => head))
      await runs.start(newRun(`second of ${subject}`, { head: { subject } }))
    expect(await runs.claim('worker', 10, minute)).toEqual([])
    const ends = (i: number) => (i % 2 === 0 ? 'completed' : 'waiting')
    await Promise.all(claims.map((run, i) => runs.commit(commitOf(run, { state: ends(i) }))))
    expect((await runs.claim('worker', 10, minute)).length).toBe(4)
  })
})

onEachDatabase('runs that start at the same time', (freshUrl) => {
  test('share transactions, and are executed in the order of their calls', async () => {
    const { one, sql, dialect } = await openStores(await freshUrl())
    const { runs } = one
    const whole: NewRun = {
      ...newRun('run-0'),
      head: runHead({
        id: 'run-0',
        caller: 'help desk',
        who: { requester: storedIdentity('requestor'), subject: storedIdentity('subject') },
        reason: 'new colleague',
        requestId: 'request',
        accessEnds: new Date(2_000_000_000_000),
        deadline: new Date(1_900_000_000_000),
      }),
      data: { text: 'a \0 and ü' },
      secret: 'sealed',
      touched: true,
    }
    const timer = { id: 'deadline of run-1', kind: 'deadline', run: 'run-1', due: { inMillis: minute } } as const
    await Promise.all([
      runs.start(newRun('first')),
      runs.start(whole),
      runs.start(newRun('run-1'), { effects: { timers: [timer] } }),
      ...Array.from({ length: 40 }, (_, i) => runs.start(newRun(`run-${i + 2}`, { head: { subject: 'ada' } }))),
    ])
    const [claimed] = await runs
      .claim('worker', 100, minute)
      .then((all) => all.filter(({ head: { id } }) => id === 'run-0'))
    expect(claimed).toMatchObject({ ...whole, state: 'running', fence: 1 })
    const { runs: listed } = await runs.list({ limit: 100 })
    expect(listed.map(({ head: { id } }) => id)).toEqual(
      ['first', ...Array.from({ length: 42 }, (_, i) => `run-${i}`)].reverse(),
    )
    expect(await sql('select id from timers')).toEqual([{ id: timer.id }])
    if (dialect === 'postgres') {
      const [row] = await sql("select count(distinct cast(xmin as text)) as count from runs where state = 'ready'")
      expect(Number(row?.['count'])).toBeLessThan(10)
    }
  })

  test('calls with keys are stored once each, and a repeated one finds its run', async () => {
    const { one } = await openStores(await freshUrl())
    const { runs } = one
    const call = (run: string, key: string, bodyHash = 'hash') => ({ scope: 'calls', key, bodyHash, run })
    await runs.start(newRun('first'), { idempotency: call('first', 'key-0') })
    const starts = await Promise.all([
      runs.start(newRun('plain')),
      ...Array.from({ length: 8 }, (_, i) =>
        runs.start(newRun(`run-${i}`), { idempotency: call(`run-${i}`, `key-${i}`) }),
      ),
      runs.start(newRun('again'), { idempotency: call('again', 'key-3') }),
      runs.start(newRun('other'), { idempotency: call('other', 'key-4', 'another hash') }),
    ])
    const repeated = (run: string) => ({ kind: 'repeated', run })
    const started = { kind: 'started' }
    const kinds = starts.map(({ kind }) => kind)
    expect(starts[1]).toEqual(repeated('first'))
    // Of calls with the same key, either may be the first.
    expect([kinds[4], kinds[9]].sort()).toEqual(['repeated', 'started'])
    expect([kinds[5], kinds[10]].sort()).toEqual(['other-body', 'started'])
    expect(kinds.filter((kind) => kind === 'started').length).toBe(8)
    expect((await runs.figures()).ready).toBe(9)
    const more = Array.from({ length: 8 }, (_, i) =>
      runs.start(newRun(`more-${i}`), { idempotency: call(`more-${i}`, `more-${i}`) }),
    )
    expect(await Promise.all(more)).toEqual(Array(8).fill(started))
    expect(await one.idempotency.find(call('', 'more-7'))).toEqual(repeated('more-7'))
  })

  test('an id that exists and a login that cannot be stored have their own errors, and the others are stored', async () => {
    const { one } = await openStores(await freshUrl())
    const { runs } = one
    await runs.start(newRun('run-3'))
    const starts = Array.from({ length: 12 }, (_, i) =>
      runs.start(newRun(`run-${i}`, i === 5 ? { head: { subject: 'a\0b' } } : {})),
    )
    const settled = await Promise.allSettled(starts)
    expect(outcomes(settled)).toEqual({ done: 10, refused: ['CONFLICT', 'BAD_REQUEST'] })
    expect((await runs.figures()).ready).toBe(11)
  })
})

describe.skipIf(postgresUrl() === '')('on PostgreSQL', () => {
  test('a batch that waited too long for the lock of one run is committed step by step', async () => {
    const url = await migratedSchema()
    const { one } = await openStores(url)
    for (let i = 0; i < 8; i++) await one.runs.start(newRun(`run-${i}`))
    const claims = await one.runs.claim('worker', 8, minute)
    const client = new PostgresClient(url, silentLogger)
    onTestFinished(() => client.close())
    let together = 0
    const slow = new Proxy(client, {
      get: (whole, name) => {
        if (name !== 'transaction') return Reflect.get(whole, name, whole)
        return (work: (tx: DatabaseTransaction) => Promise<unknown>) =>
          whole.transaction(async (tx) => {
            const done = (await work(tx)) as { readonly value: unknown }
            if (!Array.isArray(done.value)) return done
            together++
            throw new GatewayError('TARGET_TIMEOUT', 'canceling statement due to lock timeout')
          })
      },
    })
    const batches = new CommitBatches(slow, undefined, { atOnce: 1, together: commitTogether, alone: commitStep })
    const commits = claims.map((run) => batches.commit(commitOf(run, { state: 'completed' })))
    expect(await Promise.all(commits)).toEqual(claims.map(() => 'completed'))
    expect(together).toBe(1)
    expect((await one.runs.figures()).running).toBe(0)
  })

  test('a claim is on disk before its run is executed, so that a crash does not give its fence to another worker', async () => {
    const { one, sql } = await openStores(await migratedSchema())
    await sql('create table seen (state text, durable text)')
    await sql(`create function note() returns trigger language plpgsql as
      $$ begin insert into seen values (new.state, current_setting('synchronous_commit')); return new; end $$`)
    await sql('create trigger note after update on runs for each row execute function note()')
    await one.runs.start(newRun('run'))
    expect(await one.runs.claim('worker', 1, minute)).toHaveLength(1)
    expect(await sql('select state, durable from seen')).toEqual([{ state: 'running', durable: 'on' }])
  })
})
