import { describe, expect, test } from 'vitest'
import type { Difference } from '#features/reconciliation/plan/difference.ts'
import { ownIdentity } from '#identity/identity.ts'
import { newId } from '#kernel/ids.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { auditRow, minute, newRun, noLease, workflowStores } from '#testing/databases/workflow-stores.ts'
import { countsOf, missingAccount } from '#testing/reconciliation/difference.ts'
import type { NewRun } from '#workflows/store/run-commit.ts'
import type { ClaimedPlan, PlanClaim } from './plan-record.ts'
import type { ReconciliationStore } from './reconciliation-store.ts'

const requested = (reconciliation = 'chat') => ({ id: newId(), reconciliation, requestedBy: 'Ada', isAutomatic: false })
const approval = { by: 'Grace', identity: ownIdentity('test'), reason: 'looks right' }
const noAudit = { audit: [] }

async function claimed(store: ReconciliationStore, leaseMillis = minute): Promise<ClaimedPlan> {
  const plan = await store.claim('w', leaseMillis)
  if (plan === undefined) throw new Error('no plan is due')
  return plan
}

/** A plan with these differences, compared in one part. */
async function planned(store: ReconciliationStore, differences: readonly Difference[], reconciliation = 'chat') {
  await store.request(requested(reconciliation), [])
  const claim = await claimed(store)
  const counts = countsOf(differences, 1)
  await store.addPart(claim, { differences, counts, resumeAt: 'end', definition: 'a', leaseMillis: minute })
  const { source, target, agree } = counts
  const report = { plan: claim.id, reconciliation, source, target, agree, ...counts.differences }
  expect(await store.endComparison(claim, { state: 'planned', report, audit: [] })).toBe(true)
  return claim.id
}

async function applying(
  store: ReconciliationStore,
  differences: readonly Difference[],
  reconciliation?: string,
): Promise<ClaimedPlan> {
  const id = await planned(store, differences, reconciliation)
  await store.change(id, 'approve', { approval, ...noAudit })
  return await claimed(store)
}

/** Starts a run for a row of the plan, whose target "chat" has two reconciliations. */
async function startRow(store: ReconciliationStore, claim: PlanClaim, number: number, run: NewRun) {
  const [row] = await store.rows(claim.id, { limit: 1, after: number - 1 })
  if (row === undefined) throw new Error('no such row')
  return await store.startRow(claim, row, run, { target: 'chat', ofTarget: ['wiki', 'chat'] })
}

onEachDatabase('reconciliations', (freshUrl) => {
  const open = async () => {
    const stores = await workflowStores(await freshUrl())
    return { ...stores, store: stores.one.reconciliations, other: stores.two.reconciliations }
  }

  describe('a request', () => {
    test('is stored with its audit, and repeated while the plan is under way', async () => {
      const { store, other, one } = await open()
      const first = await store.request(requested(), [auditRow('asked')])
      expect(first).toMatchObject({ isNew: true, plan: { state: 'requested', requestedBy: 'Ada', attempt: 0 } })
      const again = await other.request(requested(), [auditRow('asked again')])
      expect(again).toMatchObject({ isNew: false, plan: { id: first.plan.id } })
      expect(await other.request(requested('wiki'), [])).toMatchObject({ isNew: true })
      expect((await one.audit.list({ limit: 5 })).rows.map(({ id }) => id)).toEqual(['asked'])
    })

    test('of concurrent ones, one is stored, and so for a time of the schedule', async () => {
      const { store, other } = await open()
      const scheduled = new Date(Date.UTC(2020, 0, 1))
      const all = await Promise.all(
        [store, other, store, other].map((each) => each.request({ ...requested(), scheduled }, [])),
      )
      expect(all.filter(({ isNew }) => isNew)).toHaveLength(1)
      expect(new Set(all.map(({ plan }) => plan.id)).size).toBe(1)
      const claim = await claimed(store)
      await store.fail(claim, 'broken', [])
      expect(await store.request({ ...requested(), scheduled }, [])).toMatchObject({
        isNew: false,
        plan: { id: claim.id, state: 'failed', problem: 'broken' },
      })
      expect(await store.request(requested(), [])).toMatchObject({ isNew: true })
    })
  })

  describe('a plan of changed people', () => {
    const changed = (...people: string[]) => ({ ...requested(), people })

    test('has their logins, waits for a plan that is under way, and is forgotten without differences', async () => {
      const { store, other } = await open()
      expect(await store.request(changed('ann', 'bob'), [])).toMatchObject({ isNew: true })
      expect(await other.request(changed('cyd'), [])).toMatchObject({ isNew: false, plan: { people: ['ann', 'bob'] } })
      const claim = await claimed(other)
      expect(claim.people).toEqual(['ann', 'bob'])
      expect(await store.discard({ ...claim, fence: claim.fence - 1 })).toBe(false)
      expect(await store.discard(claim)).toBe(true)
      expect(await store.get(claim.id)).toBeUndefined()
      expect(await store.request(changed('cyd'), [])).toMatchObject({ isNew: true })
    })

    test('has the accounts that a comparison of everyone created in its limits', async () => {
      const { store } = await open()
      const { id } = await applying(store, [missingAccount('ann'), missingAccount('bob')])
      expect(await store.window('chat', 'other', minute)).toEqual({ target: 3, removals: {} })
      expect(await store.window('chat', id, minute)).toEqual({ target: 1, removals: {} })
    })

    test('writes no report, leaves a plan that waits, and counts for the limits of the next ones', async () => {
      const { store, sql } = await open()
      const waiting = await planned(store, [missingAccount('dan')])
      const compareChanges = async (...logins: string[]) => {
        await store.request(changed(...logins), [])
        const claim = await claimed(store)
        const leaving = logins.map((login) => missingAccount(login, { action: 'deactivate' }))
        const losing = logins.map((login) => missingAccount(`${login}-too`, { action: 'change', removes: true }))
        const changing = missingAccount('old', { action: 'change' })
        const differences = [...leaving, ...losing, changing, missingAccount('new')]
        const counts = countsOf(differences)
        await store.addPart(claim, { differences, counts, resumeAt: 'end', definition: 'a', leaseMillis: minute })
        const window = await store.window('chat', claim.id, minute)
        expect(await store.endComparison(claim, { state: 'applying', approval, audit: [] })).toBe(true)
        return { id: claim.id, window }
      }
      const first = await compareChanges('ann')
      expect(first.window).toEqual({ target: 1, removals: {} })
      expect(await store.reports('chat', 10)).toHaveLength(1)
      expect((await store.get(waiting))?.state).toBe('planned')
      const claim = await claimed(store)
      expect(await store.window('chat', 'other', minute)).toMatchObject({ removals: { deactivate: 1, change: 1 } })
      await startRow(store, claim, 0, newRun('run-1'))
      await store.change(first.id, 'stop', noAudit)
      // A worker still looks after its runs.
      expect((await claimed(store)).id).toBe(first.id)
      const next = await compareChanges('bob')
      // One account of the last comparison of everyone, and one that was created since. Rows of a stopped plan don't start.
      expect(next.window).toEqual({ target: 2, removals: { deactivate: 1 } })
      await store.change(next.id, 'stop', noAudit)
      await claimed(store)
      // Bob's run was never started, and Ann counts in the plan itself.
      expect(await store.window('chat', 'other', minute)).toMatchObject({ removals: { deactivate: 1 } })
      expect((await compareChanges('ann', 'bob')).window).toMatchObject({ removals: {} })
      await sql('update reconciliation_plans set approved = approved - 60001 where approved is not null returning id')
      expect(await store.window('chat', 'other', minute)).toMatchObject({ removals: {} })
    })
  })

  describe('a claim', () => {
    test('is given to one worker, and to another after its lease', async () => {
      const { store, other } = await open()
      await store.request(requested(), [])
      const claims = await Promise.all([store, other, store, other].map((each) => each.claim('w', noLease)))
      const [stale, ...more] = claims.filter((claim) => claim !== undefined)
      if (stale === undefined) throw new Error('not claimed')
      expect(stale).toMatchObject({ state: 'comparing', worker: 'w' })
      // A lease that has expired when it begins may be taken over at once.
      const last = [stale, ...more].toSorted((a, b) => b.fence - a.fence)[0] ?? stale
      const taken = await other.claim('v', minute)
      expect(taken).toMatchObject({ id: stale.id, fence: last.fence + 1 })
      expect(await store.renew(stale, minute)).toBe(false)
      const part = {
        differences: [missingAccount('ada')],
        counts: countsOf([missingAccount('ada')]),
        resumeAt: 'x',
        definition: 'a',
      }
      expect(await store.addPart(stale, { ...part, leaseMillis: minute })).toBe(false)
      expect(await store.rows(stale.id, { limit: 10 })).toEqual([])
      expect(await store.claim('w', minute)).toBeUndefined()
    })

    test('of a process that died is free at the next start on SQLite', async () => {
      const { store, dialect } = await open()
      await store.request(requested(), [])
      await claimed(store)
      await store.recover()
      expect((await store.claim('w', minute)) === undefined).toBe(dialect === 'postgres')
    })
  })

  describe('a comparison', () => {
    test('continues at its checkpoint, with rows of all parts in order', async () => {
      const { store } = await open()
      await store.request(requested(), [])
      const first = await claimed(store)
      const [ada, bob] = [missingAccount('Ada'), missingAccount('bob', { action: 'report' })]
      const part = {
        differences: [ada],
        counts: countsOf([ada]),
        resumeAt: '{"after":"ada"}',
        definition: 'a',
        leaseMillis: noLease,
      }
      expect(await store.addPart(first, part)).toBe(true)
      const second = await claimed(store)
      expect(second).toMatchObject({ resumeAt: '{"after":"ada"}', definition: 'a', counts: countsOf([ada]) })
      const rest = {
        differences: [bob],
        counts: countsOf([ada, bob]),
        resumeAt: 'end',
        definition: 'a',
        leaseMillis: minute,
      }
      expect(await store.addPart(second, rest)).toBe(true)
      const rows = await store.rows(first.id, { limit: 10 })
      expect(rows).toMatchObject([
        { number: 0, state: 'open', difference: ada },
        { number: 1, state: 'reported', difference: bob },
      ])
      expect(await store.rows(first.id, { limit: 10, login: 'ADA' })).toHaveLength(1)
      expect(await store.rows(first.id, { limit: 10, kind: 'extra' })).toEqual([])
      expect(await store.rows(first.id, { limit: 10, after: 0, state: 'reported', action: 'report' })).toHaveLength(1)
      expect(await store.progress(first.id)).toMatchObject({ open: 1, reported: 1, done: 0 })
    })

    test('that ends replaces an earlier plan that waits for approval', async () => {
      const { store } = await open()
      const [first, elsewhere] = [await planned(store, [missingAccount('ada')]), await planned(store, [], 'wiki')]
      const second = await planned(store, [])
      expect(await store.get(first)).toMatchObject({ state: 'expired', problem: expect.stringContaining('newer') })
      expect((await store.list({ limit: 10 })).map(({ id, state }) => [id, state])).toEqual([
        [second, 'planned'],
        [elsewhere, 'planned'],
        [first, 'expired'],
      ])
      expect(await store.list({ reconciliation: 'chat', before: second, limit: 1 })).toMatchObject([{ id: first }])
      await expect(store.change(first, 'approve', { approval, ...noAudit })).rejects.toMatchObject({ code: 'CONFLICT' })
    })

    test('with reports shows since when systems differ', async () => {
      const { store, sql } = await open()
      const [ada, bob] = [missingAccount('ada'), missingAccount('bob')]
      const plans = [await planned(store, [ada]), await planned(store, []), await planned(store, [ada])]
      plans.push(await planned(store, [ada, bob]), await planned(store, [], 'wiki'))
      for (const [i, plan] of plans.entries()) {
        await sql(`update reconciliation_reports set at = ${1000 + i} where plan = '${plan}' returning plan`)
      }
      expect([...(await store.drift())]).toMatchObject([
        ['chat', { report: { missing: 2, agree: 1, at: new Date(1003) }, differsSince: new Date(1002) }],
        ['wiki', { report: { missing: 0, at: new Date(1004) } }],
      ])
      expect((await store.drift()).get('wiki')?.differsSince).toBeUndefined()
      expect((await store.reports('chat', 2)).map(({ missing }) => missing)).toEqual([2, 1])
    })
  })

  describe('a plan that is applied', () => {
    test('starts one run for each row, also when its claim is taken over', async () => {
      const { store, other, one, woken } = await open()
      const claim = await applying(store, [missingAccount('ada'), missingAccount('bob', { action: 'report' })])
      expect(claim).toMatchObject({ state: 'applying', approval })
      expect(await store.openRows(claim.id, 10)).toMatchObject([{ number: 0 }])
      expect(await startRow(store, claim, 0, newRun('run-1'))).toEqual({ kind: 'started' })
      expect(await startRow(store, claim, 0, newRun('run-2'))).toEqual({ kind: 'void' })
      expect(await startRow(store, claim, 1, newRun('run-3'))).toEqual({ kind: 'void' })
      expect(await startRow(other, { ...claim, fence: claim.fence - 1 }, 0, newRun('run-4'))).toEqual({ kind: 'void' })
      expect((await one.runs.list({ limit: 10 })).runs.map(({ head }) => head.id)).toEqual(['run-1'])
      expect(woken).toContain('run-1')
    })

    test('shows rows whose runs have changed, until they are settled', async () => {
      const { store, one, sql } = await open()
      const claim = await applying(store, [missingAccount('ada'), missingAccount('bob'), missingAccount('eve')])
      for (const [number, id] of ['a', 'b', 'c'].entries()) await startRow(store, claim, number, newRun(id))
      expect(await store.changedRows(claim.id, 10)).toEqual([])
      await sql(`update runs set state = 'completed', ended = 5 where id = 'a' returning id`)
      await sql(`update runs set state = 'waiting' where id = 'b' returning id`)
      await sql(`delete from runs where id = 'c' returning id`)
      const changed = await store.changedRows(claim.id, 10)
      expect(changed.map(({ number, runState }) => [number, runState])).toEqual([
        [0, 'completed'],
        [1, 'waiting'],
        [2, undefined],
      ])
      await store.settleRow(claim, { number: 0, state: 'done' })
      await store.settleRow(claim, { number: 1, state: 'waiting', reason: 'an approver' })
      await store.settleRow(claim, { number: 2, state: 'failed', reason: 'gone' })
      expect(await store.settleRow(claim, { number: 0, state: 'failed', reason: 'late' })).toBe(false)
      expect(await store.changedRows(claim.id, 10)).toEqual([])
      await sql(`update runs set state = 'denied', ended = 6 where id = 'b' returning id`)
      expect(await store.changedRows(claim.id, 10)).toMatchObject([{ number: 1, runState: 'denied', run: 'b' }])
      expect(await store.progress(claim.id)).toMatchObject({ done: 1, waiting: 1, failed: 1, open: 0 })
      expect(await store.endApplying(claim, noLease, [auditRow('applied')])).toBe(true)
      expect(await store.get(claim.id)).toMatchObject({ state: 'applied', ended: expect.any(Date) })
      // Runs still wait, so it is claimed again, and stays applied.
      const again = await claimed(store)
      expect(again).toMatchObject({ id: claim.id, state: 'applied' })
      await store.settleRow(again, { number: 1, state: 'skipped', reason: 'denied' })
      await store.endApplying(again, undefined, [])
      expect(await store.claim('w', minute)).toBeUndefined()
      expect((await one.audit.list({ limit: 5 })).rows.map(({ id }) => id)).toEqual(['applied'])
    })

    test('knows the runs that others have started for the same person or account of its target', async () => {
      const { store } = await open()
      // An account of no person, which someone gets while its deactivation waits for approval: another key.
      const extra = { key: 'account 7', kind: 'extra', action: 'deactivate', source: undefined } as const
      const account = { id: '7', login: 'Ann' }
      const claim = await applying(store, [missingAccount('ann', { ...extra, target: account }), missingAccount('bob')])
      await startRow(store, claim, 0, newRun('a'))
      await startRow(store, claim, 1, newRun('b'))
      const pending = (of: Difference, names = ['wiki', 'chat'], id = 'other') => store.pendingRun({ id }, names, of)
      const again = missingAccount('dan', { kind: 'different', action: 'change', target: { ...account, login: 'ann' } })
      expect(await pending(again)).toBe('a')
      // A source without ids, where the key is the login; or another source, where the person has another id.
      expect(await pending(missingAccount('BOB', { key: 'person 9' }))).toBe('b')
      expect(await pending(missingAccount('bob', { source: { login: 'robert' } }))).toBe('b')
      expect(await pending(missingAccount('eve'))).toBeUndefined()
      expect(await pending(again, ['wiki'])).toBeUndefined()
      expect(await pending(again, ['chat'], claim.id)).toBeUndefined()
      await store.settleRow(claim, { number: 0, state: 'done' })
      expect(await pending(again)).toBeUndefined()
    })

    test('starts one run for an account that plans of two reconciliations start at the same time', async () => {
      const { store, other, one } = await open()
      const logins = Array.from({ length: 10 }, (_, i) => `user${i}`)
      const differences = logins.map((login) => missingAccount(login))
      const claim = await applying(store, differences)
      const twin = await applying(store, differences, 'wiki')
      for (const [number, login] of logins.entries()) {
        const starts = await Promise.all([
          startRow(store, claim, number, newRun(`chat ${login}`)),
          startRow(other, twin, number, newRun(`wiki ${login}`)),
        ])
        const isFirst = starts[0]?.kind === 'started'
        const pending = { kind: 'pending', run: `${isFirst ? 'chat' : 'wiki'} ${login}` }
        expect(starts).toEqual(isFirst ? [{ kind: 'started' }, pending] : [pending, { kind: 'started' }])
      }
      expect((await one.runs.list({ limit: 100 })).runs).toHaveLength(logins.length)
    })

    test('defers a row longer each time, also one whose run has ended', async () => {
      const { store, sql } = await open()
      const claim = await applying(store, [missingAccount('ann'), missingAccount('bob')])
      await startRow(store, claim, 1, newRun('b'))
      await sql(`update runs set state = 'completed', ended = 5 where id = 'b' returning id`)
      const numbers = async () => [
        ...(await store.openRows(claim.id, 10)).map(({ number }) => number),
        ...(await store.changedRows(claim.id, 10)).map(({ number }) => number),
      ]
      expect(await numbers()).toEqual([0, 1])
      for (const number of [0, 1]) expect(await store.deferRow(claim, { number, reason: 'away' }, minute)).toBe(1)
      expect(await store.deferRow({ ...claim, fence: 0 }, { number: 0, reason: 'late' }, minute)).toBeUndefined()
      expect(await numbers()).toEqual([])
      expect(await store.rows(claim.id, { limit: 10, state: 'open' })).toMatchObject([{ reason: 'away' }])
      expect(await store.deferRow(claim, { number: 0, reason: 'away' }, minute)).toBe(2)
      const [first, second] = await sql('select due - updated as waits from reconciliation_rows order by number')
      expect([first?.['waits'], second?.['waits']].map(Number)).toEqual([2 * minute, minute])
      await sql('update reconciliation_rows set due = 1 returning plan')
      expect(await numbers()).toEqual([0, 1])
    })

    test('is kept while runs of it wait', async () => {
      const { store, sql } = await open()
      const claim = await applying(store, [missingAccount('ann')])
      await startRow(store, claim, 0, newRun('a'))
      await store.endApplying(claim, noLease, [])
      const later = new Date(Date.now() + minute)
      const retention = { plans: later, plansKept: 0, reports: new Date(0) }
      expect(await store.prune(retention)).toBe(0)
      // Its outcome is no longer followed, but the next plan must know the run.
      await store.endApplying(await claimed(store), undefined, [])
      expect(await store.prune(retention)).toBe(0)
      expect(await store.pendingRun({ id: 'next' }, ['chat'], missingAccount('ann'))).toBe('a')
      await sql(`update runs set state = 'completed', ended = 5 where id = 'a' returning id`)
      expect(await store.prune(retention)).toBe(1)
    })

    test('waits while the reconciliation is compared again', async () => {
      const { store } = await open()
      const id = await planned(store, [missingAccount('ada')])
      const { plan } = await store.request(requested(), [])
      await expect(store.change(id, 'approve', { approval, ...noAudit })).rejects.toMatchObject({
        code: 'CONFLICT',
        publicText: expect.stringContaining(plan.id),
      })
    })
  })

  describe('a person', () => {
    test('pauses and resumes a comparison, whose worker loses its claim', async () => {
      const { store } = await open()
      await store.request(requested(), [])
      const claim = await claimed(store)
      await store.change(claim.id, 'pause', { problem: 'Paused by Ada.', audit: [auditRow('paused')] })
      expect(await store.fail(claim, 'late', [])).toBe(false)
      expect(await store.claim('w', minute)).toBeUndefined()
      expect(await store.get(claim.id)).toMatchObject({ state: 'paused', problem: 'Paused by Ada.' })
      expect(await store.change(claim.id, 'resume', noAudit)).toMatchObject({ state: 'requested' })
      expect(await claimed(store)).toMatchObject({ id: claim.id, state: 'comparing' })
    })

    test('resumes what waits for a system, which else continues on time', async () => {
      const { store } = await open()
      const claim = await applying(store, [missingAccount('ada')])
      await store.pauseFor(claim, 'the chat does not answer', minute)
      expect(await store.get(claim.id)).toMatchObject({ state: 'paused', attempt: 1, due: expect.any(Date) })
      expect(await store.claim('w', minute)).toBeUndefined()
      expect(await store.change(claim.id, 'resume', noAudit)).toMatchObject({ state: 'applying', attempt: 0 })
      const again = await claimed(store)
      await store.pauseFor(again, 'the chat does not answer', noLease)
      expect(await claimed(store)).toMatchObject({ id: claim.id, state: 'applying' })
    })

    test('stops a plan, and rows that have started are still settled', async () => {
      const { store, sql } = await open()
      const claim = await applying(store, [missingAccount('ada'), missingAccount('bob')])
      await startRow(store, claim, 0, newRun('a'))
      await store.change(claim.id, 'stop', { problem: 'Stopped by Ada.', audit: [] })
      expect(await startRow(store, claim, 1, newRun('b'))).toEqual({ kind: 'void' })
      await sql(`update runs set state = 'completed', ended = 5 where id = 'a' returning id`)
      const again = await claimed(store)
      expect(again.state).toBe('stopped')
      expect(await store.settleRow(again, { number: 0, state: 'done' })).toBe(true)
      await store.endApplying(again, undefined, [])
      expect(await store.get(claim.id)).toMatchObject({ state: 'stopped', problem: 'Stopped by Ada.' })
      for (const change of ['approve', 'pause', 'resume', 'stop'] as const) {
        await expect(store.change(claim.id, change, { approval, ...noAudit })).rejects.toMatchObject({
          code: 'CONFLICT',
        })
      }
      await expect(store.change('none', 'stop', noAudit)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    })
  })

  test('plans that no one approves expire, and old ones are deleted with their rows', async () => {
    const { store, sql } = await open()
    const plans = []
    for (let i = 0; i < 4; i++) plans.push(await planned(store, [missingAccount(`user-${i}`)]))
    expect(await store.expire(new Date(0))).toBe(0)
    expect(await store.expire(new Date(Date.now() + minute))).toBe(1)
    const retention = { plans: new Date(0), plansKept: 2, reports: new Date(0) }
    // Those of the last two hours count for the limits.
    expect(await store.prune(retention)).toBe(0)
    await sql(`update reconciliation_plans set ended = ended - 7300000 where ended is not null returning id`)
    expect(await store.prune(retention)).toBe(2)
    expect((await store.list({ limit: 10 })).map(({ id }) => id)).toEqual(plans.slice(2).toReversed())
    expect(await sql('select distinct plan from reconciliation_rows')).toHaveLength(2)
    expect(await store.reports('chat', 10)).toHaveLength(4)
    const later = new Date(Date.now() + minute)
    expect(await store.prune({ plans: later, plansKept: 2, reports: later })).toBe(2)
    expect(await store.reports('chat', 10)).toEqual([])
    expect(await sql('select plan from reconciliation_rows')).toEqual([])
  })
})
