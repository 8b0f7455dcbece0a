import { describe, expect, test } from 'vitest'
import type { ComparisonPart, Difference } from '#features/reconciliation/plan/difference.ts'
import type { ClaimedPlan, PlanCounts } from '#features/reconciliation/store/plan-record.ts'
import { Attributes } from '#identity/attributes.ts'
import { ownIdentity } from '#identity/identity.ts'
import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import { silentLogger } from '#kernel/logger.ts'
import type { WorkflowCall } from '#sdk/workflow/workflow.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { minute, newRun, workflowStores } from '#testing/databases/workflow-stores.ts'
import { missingAccount } from '#testing/reconciliation/difference.ts'
import { PlanWorker, type ReconciledSystems } from './plan-worker.ts'
import { ReconciliationPlans } from './plans.ts'

const by = { login: 'Ada', identity: ownIdentity('test') }
const never = new AbortController().signal
const unreachable = new GatewayError('TARGET_UNREACHABLE', 'the chat does not answer')

/** Systems whose differences the test decides. */
class ScriptedSystems implements ReconciledSystems {
  definition = 'first'
  readonly target = 'chat'
  readonly ofTarget = ['chat', 'chat by mail']
  readonly copiesLogin = true
  isAutomatic = false
  limit: string | undefined
  workflow: string | undefined = 'join'
  /** By key, in the order of the comparison; a row that is removed agrees. */
  readonly present: Map<string, Difference>
  /** What the reads throw from then on: `compare` behind this key, `compareOne` of this key. */
  failing = new Map<string, Error>()

  constructor(...differences: readonly Difference[]) {
    this.present = new Map(differences.map((one) => [one.key, one]))
  }

  async *compare(resumeAt = ''): AsyncGenerator<ComparisonPart> {
    let hasBegun = resumeAt === ''
    for (const [key, one] of this.present) {
      if (hasBegun) yield { differences: [one], counts: { source: 1, target: 0, agree: 0 }, resumeAt: key }
      const error = this.failing.get(`behind ${key}`)
      if (hasBegun && error !== undefined) throw error
      hasBegun ||= key === resumeAt
    }
  }

  /** Those of the logins, one in each part. */
  async *comparePeople(logins: readonly string[], resumeAt = '0'): AsyncGenerator<ComparisonPart> {
    for (let next = Number(resumeAt); next < logins.length; next++) {
      const error = this.failing.get(`missing ${logins[next]}`)
      if (error !== undefined) throw error
      const one = this.present.get(`missing ${logins[next]}`)
      const differences = one === undefined ? [] : [one]
      const counts = { source: 1, target: 0, agree: 1 - differences.length }
      yield { differences, counts, resumeAt: String(next + 1) }
    }
  }

  async compareOne({ source }: Parameters<ReconciledSystems['compareOne']>[0]) {
    const key = `missing ${source?.login}`
    const error = this.failing.get(key)
    if (error !== undefined) throw error
    const difference = this.present.get(key)
    const user = { userID: source?.login ?? '', attributes: Attributes.from({ mail: ['x'] }), cleared: [] }
    return difference && { difference, user }
  }

  isAnswering = false
  answer = async (): Promise<boolean> => this.isAnswering

  /** The last counts that were compared with the limits. */
  limited: PlanCounts | undefined
  exceededLimit = (counts: PlanCounts): string | undefined => {
    this.limited = counts
    return this.limit
  }
  workflowOf = (): string | undefined => this.workflow
}

onEachDatabase('the worker of plans', (freshUrl) => {
  async function open(...differences: readonly Difference[]) {
    const { one, sql } = await workflowStores(await freshUrl())
    const { reconciliations: store, accountLinks: links } = one
    const plans = new ReconciliationPlans({ store, links, clock: systemClock })
    const worker = new PlanWorker({ store, clock: systemClock, log: silentLogger, leaseMillis: minute })
    const systems = new ScriptedSystems(...differences)
    const calls: WorkflowCall[] = []
    const runtime = {
      find: (name: string) => (name === 'chat' ? systems : undefined),
      prepare: async (call: WorkflowCall) => {
        calls.push(call)
        return newRun(newId(), { head: { workflow: call.head.workflow, subject: call.user.userID } })
      },
    }
    const turn = { signal: never, isOver: () => false }
    /** One turn with the plan that is due. */
    const work = async (more: Partial<typeof turn> = {}): Promise<ClaimedPlan> => {
      const claim = await store.claim('w', minute)
      if (claim === undefined) throw new Error('no plan is due')
      await worker.work(claim, runtime, { ...turn, ...more })
      return claim
    }
    const request = async (scheduled?: Date) =>
      (await plans.request('chat', { by, scheduled, isAutomatic: scheduled !== undefined })).plan.id
    const planned = async (): Promise<string> => {
      const id = await request()
      await work()
      return id
    }
    const endRuns = (state: string) =>
      sql(`update runs set state = '${state}', ended = 5 where state = 'ready' returning id`)
    const state = async (id: string) => {
      const found = await plans.get(id)
      if (found === undefined) throw new Error('no plan')
      return found
    }
    /** Applies the plan, while its runs end like this. */
    const applied = async (id: string, outcome: string, before: () => void = () => {}) => {
      await plans.approve(id, { by, reason: 'fine' })
      const ended = new AbortController()
      const ending = (async () => {
        while (!ended.signal.aborted) {
          const { progress } = await state(id)
          if (progress.open === 0 && progress.started > 0) {
            before()
            await endRuns(outcome)
          }
          await new Promise((resolve) => setTimeout(resolve, 20))
        }
      })()
      await work()
      ended.abort()
      await ending
    }
    return { store, plans, systems, calls, sql, work, request, planned, endRuns, state, applied, audit: one.audit }
  }

  const [ada, bob] = [missingAccount('ada'), missingAccount('bob')]

  describe('that compares changed people', () => {
    const changed = (plans: ReconciliationPlans, ...people: string[]) =>
      plans.request('chat', { by: { login: 'gatehouse' }, isAutomatic: true, people })

    test('forgets them if they agree, and applies what differs without a report', async () => {
      const { plans, systems, work, state, calls, endRuns, audit } = await open(ada)
      systems.isAutomatic = true
      const first = await changed(plans, 'cyd', 'dan')
      await work()
      expect(await plans.get(first.plan.id)).toBeUndefined()
      expect((await audit.list({ limit: 5 })).rows).toEqual([])
      const { plan } = await changed(plans, 'cyd', 'ada')
      await work()
      expect(await state(plan.id)).toMatchObject({
        plan: { state: 'applying', people: ['cyd', 'ada'], counts: { source: 2, agree: 1 } },
        progress: { open: 1 },
      })
      expect(await plans.drift()).toEqual(new Map())
      const working = work()
      await expect.poll(() => calls.length, { timeout: 20_000 }).toBe(1)
      await expect.poll(async () => (await state(plan.id)).progress.started, { timeout: 20_000 }).toBe(1)
      systems.present.clear()
      await endRuns('completed')
      await working
      expect(await state(plan.id)).toMatchObject({ plan: { state: 'applied' }, progress: { done: 1 } })
    })

    test('counts all accounts and the changes of the last hour for the limits, and stops beyond them', async () => {
      const leave = (login: string) => missingAccount(login, { action: 'deactivate' })
      const { plans, systems, work, request, state, planned, endRuns } = await open(leave('ada'), leave('bob'))
      await planned()
      systems.isAutomatic = true
      const first = await changed(plans, 'ada')
      await work()
      expect((await state(first.plan.id)).plan.state).toBe('applying')
      expect(systems.limited).toMatchObject({ target: 0, actions: { deactivate: 1, create: 0 } })
      await work({ isOver: () => true })
      expect((await state(first.plan.id)).progress.started).toBe(1)
      await plans.stop(first.plan.id, { by })
      await endRuns('completed')
      await work()
      systems.limit = 'Too many accounts would be deactivated.'
      const next = await changed(plans, 'bob')
      await work()
      expect(systems.limited).toMatchObject({ actions: { deactivate: 2 } })
      const problem = `With the other plans of the last hour: ${systems.limit}`
      expect((await state(next.plan.id)).plan).toMatchObject({ state: 'stopped', problem })
      // So it is for a plan of everyone, unless a person decides about it.
      systems.present.delete('missing ada')
      const scheduled = await request(new Date(1))
      await work()
      expect(systems.limited).toMatchObject({ target: 0, actions: { deactivate: 2 } })
      expect((await state(scheduled)).plan).toMatchObject({ state: 'stopped', problem })
      await request()
      await work()
      expect(systems.limited).toMatchObject({ actions: { deactivate: 1 }, removes: 0 })
      systems.present.set('missing eve', missingAccount('eve', { action: 'change', removes: true }))
      await request()
      await work()
      expect(systems.limited).toMatchObject({ actions: { deactivate: 1, change: 1 }, removes: 1 })
    })
  })

  test('waits for the reconciliation of changed people, and not for long if a system is away', async () => {
    const { systems, plans, work, state, sql } = await open(ada)
    const changed = { by: { login: 'gatehouse' }, isAutomatic: true, people: ['ada'] }
    const { plan: aside } = await plans.request('none', changed)
    await work()
    expect((await state(aside.id)).plan).toMatchObject({ state: 'paused', due: expect.any(Date) })
    await plans.stop(aside.id, { by })
    const { plan } = await plans.request('chat', changed)
    systems.failing.set(ada.key, unreachable)
    await work()
    expect((await state(plan.id)).plan).toMatchObject({ state: 'paused', attempt: 1 })
    await sql(`update reconciliation_plans set attempt = 10, due = 1 where id = '${plan.id}' returning id`)
    await work()
    expect((await state(plan.id)).plan).toMatchObject({
      state: 'failed',
      problem: 'the chat does not answer It was tried 10 times.',
    })
  })

  describe('that compares', () => {
    test('stores parts, and continues behind the last one when it was interrupted', async () => {
      const { work, request, plans, state } = await open(ada, bob)
      const id = await request()
      await work({ isOver: () => true })
      expect(await state(id)).toMatchObject({
        plan: { state: 'comparing', counts: { source: 1 } },
        progress: { open: 1 },
      })
      await work()
      expect(await state(id)).toMatchObject({
        plan: { state: 'planned', counts: { source: 2, differences: { missing: 2 }, actions: { create: 2 } } },
        progress: { open: 2 },
      })
      expect(await plans.rows(id, { limit: 10 })).toMatchObject([{ difference: ada }, { difference: bob }])
      expect((await plans.drift()).get('chat')).toMatchObject({ report: { plan: id, missing: 2, source: 2 } })
    })

    test('waits for a system that does not answer, and finishes the rest', async () => {
      const { systems, work, request, plans, state } = await open(ada, bob)
      const id = await request()
      systems.failing.set('behind missing ada', unreachable)
      await work()
      expect((await state(id)).plan).toMatchObject({
        state: 'paused',
        problem: 'the chat does not answer',
        attempt: 1,
        due: expect.any(Date),
        counts: { source: 1 },
      })
      expect(await plans.drift()).toEqual(new Map())
      systems.failing.clear()
      await plans.resume(id, { by })
      await work()
      expect((await state(id)).plan).toMatchObject({ state: 'planned', counts: { source: 2 } })
      expect((await state(id)).plan.problem).toBeUndefined()
    })

    test('fails for a source that contradicts itself, so that nothing of it is applied', async () => {
      const { systems, work, request, plans, state, audit } = await open(ada, bob)
      const id = await request()
      systems.failing.set('behind missing ada', new GatewayError('TARGET_FAILED', 'the source ended early'))
      await work()
      expect((await state(id)).plan).toMatchObject({ state: 'failed', problem: 'the source ended early' })
      await expect(plans.approve(id, { by })).rejects.toMatchObject({ code: 'CONFLICT' })
      expect((await audit.list({ limit: 5 })).rows.map(({ value }) => value)).toEqual([`fail ${id}`, `request ${id}`])
    })

    test('stops a plan beyond its limits', async () => {
      const { systems, planned, plans, state, calls } = await open(ada)
      systems.limit = 'The plan would delete 60 accounts. The limit is 50.'
      const id = await planned()
      expect((await state(id)).plan).toMatchObject({ state: 'stopped', problem: systems.limit })
      await expect(plans.approve(id, { by })).rejects.toMatchObject({ code: 'CONFLICT' })
      expect(calls).toEqual([])
    })

    test('fails for a reconciliation that does not exist', async () => {
      const { plans, work, state } = await open()
      const { plan } = await plans.request('none', { by })
      await work()
      expect((await state(plan.id)).plan).toMatchObject({ state: 'failed', problem: expect.stringContaining('"none"') })
    })

    test('approves a plan of a schedule, within the limits', async () => {
      const { systems, request, work, state, plans, calls } = await open(ada)
      systems.isAutomatic = true
      const manual = await request()
      await work()
      expect((await state(manual)).plan.state).toBe('planned')
      const id = await request(new Date(1))
      await work()
      expect((await state(id)).plan).toMatchObject({ state: 'applying', approval: { by: 'its schedule' } })
      await plans.stop(id, { by })
      await work()
      const named = (await plans.request('chat', { by: { login: 'gatehouse' } })).plan.id
      await work()
      expect((await state(named)).plan).toMatchObject({ state: 'planned', isAutomatic: false })
      systems.limit = 'too many'
      const next = await request(new Date(2))
      await work()
      expect((await state(next)).plan.state).toBe('stopped')
      expect(calls).toEqual([])
    })
  })

  describe('whose reconciliation is changed', () => {
    const changed = { state: 'failed', problem: expect.stringContaining('was changed. Make a new plan.') }

    test('joins no two comparisons', async () => {
      const { systems, work, request, state } = await open(ada, bob)
      const id = await request()
      await work({ isOver: () => true })
      expect((await state(id)).progress.open).toBe(1)
      systems.definition = 'second'
      await work()
      expect(await state(id)).toMatchObject({ plan: changed, progress: { open: 1 } })
      const next = await request()
      await work()
      expect(await state(next)).toMatchObject({ plan: { state: 'planned' }, progress: { open: 2 } })
    })

    test('applies nothing of a plan that was approved, and follows the runs that have started', async () => {
      const { systems, planned, plans, work, state, calls, endRuns } = await open(ada, bob)
      const first = await planned()
      systems.definition = 'second'
      await plans.approve(first, { by })
      await work()
      expect(await state(first)).toMatchObject({ plan: changed, progress: { open: 2 } })
      expect(calls).toEqual([])
      await work()
      const second = await planned()
      await plans.approve(second, { by })
      await work({ isOver: () => true })
      systems.definition = 'third'
      await work()
      expect(await state(second)).toMatchObject({ plan: changed, progress: { started: 2 } })
      systems.present.clear()
      await endRuns('completed')
      await work()
      expect(await state(second)).toMatchObject({ plan: changed, progress: { done: 2 } })
    })
  })

  describe('that applies', () => {
    test('starts a run for each row, and says done only if the account agrees then', async () => {
      const { systems, calls, planned, applied, plans, state, audit } = await open(ada, bob)
      const id = await planned()
      await applied(id, 'completed', () => systems.present.delete(ada.key))
      // Rows are applied at the same time.
      expect(calls.toSorted((one, other) => one.user.userID.localeCompare(other.user.userID))).toMatchObject([
        {
          head: {
            workflow: 'join',
            requester: 'gatehouse',
            caller: 'Ada',
            reason: `reconciliation chat, plan ${id}, approved by Ada: fine`,
          },
          user: { userID: 'ada' },
          asynchronous: true,
          keepGroups: true,
          basedOn: { target: 'chat', version: '' },
          params: { reconciliation: 'chat', reconciliationAction: 'create', reconciliationPlan: id },
        },
        { user: { userID: 'bob' } },
      ])
      expect(await state(id)).toMatchObject({ plan: { state: 'applied' }, progress: { done: 1, failed: 1 } })
      expect(await plans.rows(id, { limit: 10 })).toMatchObject([
        { state: 'done', run: expect.any(String) },
        { state: 'failed', reason: expect.stringContaining('still differs') },
      ])
      const entries = (await audit.list({ limit: 10 })).rows.map(({ value, reason }) => [value, reason])
      expect(entries[0]).toEqual([`apply ${id}`, '1 done, 0 skipped, 1 failed, 0 waiting'])
      expect(entries[1]).toEqual([`approve ${id}`, 'fine'])
    })

    test('skips what is not as in the plan any more', async () => {
      const { systems, calls, planned, plans, work, state } = await open(ada, bob, missingAccount('eve'))
      const id = await planned()
      systems.present.delete(ada.key)
      systems.present.set(bob.key, { ...bob, attributes: [{ name: 'mail', from: [], to: ['other@example.com'] }] })
      systems.failing.set('missing eve', new GatewayError('BAD_REQUEST', 'a value that no account may have'))
      await plans.approve(id, { by })
      await work()
      expect(await plans.rows(id, { limit: 10 })).toMatchObject([
        { state: 'skipped', reason: 'The account agrees now.' },
        { state: 'skipped', reason: 'Other values than in the plan: mail.' },
        { state: 'failed', reason: 'a value that no account may have' },
      ])
      expect((await state(id)).plan.state).toBe('applied')
      expect(calls).toEqual([])
    })

    test('waits for a system that does not answer, and starts no run twice', async () => {
      const { systems, planned, plans, work, state, sql, endRuns } = await open(ada, bob)
      const id = await planned()
      systems.failing.set(bob.key, unreachable)
      await plans.approve(id, { by })
      await work()
      expect(await state(id)).toMatchObject({
        plan: { state: 'paused', problem: 'the chat does not answer' },
        progress: { started: 1, open: 1 },
      })
      systems.failing.clear()
      systems.present.delete(ada.key)
      await endRuns('completed')
      await plans.resume(id, { by })
      await work({ isOver: () => true })
      expect(await sql('select id from runs')).toHaveLength(2)
      expect((await state(id)).progress).toMatchObject({ done: 1, started: 1 })
    })

    test('fails a row that alone does not answer after a few attempts, and continues with the others', async () => {
      const { systems, planned, plans, work, state, sql, endRuns } = await open(ada, bob)
      const id = await planned()
      systems.isAnswering = true
      systems.failing.set(ada.key, unreachable)
      await plans.approve(id, { by })
      await work({ isOver: () => true })
      expect(await state(id)).toMatchObject({ plan: { state: 'applying' }, progress: { open: 1, started: 1 } })
      expect(await plans.rows(id, { limit: 10, state: 'open' })).toMatchObject([{ reason: 'the chat does not answer' }])
      systems.present.delete(bob.key)
      await endRuns('completed')
      const nextAttempt = async () => {
        await sql(`update reconciliation_plans set due = 1 where id = '${id}' returning id`)
        await work()
      }
      await sql(`update reconciliation_rows set due = due + 3600000 where due is not null returning plan`)
      for (let i = 0; i < 6; i++) await nextAttempt()
      expect((await state(id)).progress).toMatchObject({ open: 1, done: 1 })
      for (let i = 0; i < 4; i++) {
        expect((await state(id)).progress.open).toBe(1)
        await sql(`update reconciliation_rows set due = 1 where plan = '${id}' and number = 0 returning plan`)
        await nextAttempt()
      }
      expect(await state(id)).toMatchObject({ plan: { state: 'applied' }, progress: { done: 1, failed: 1 } })
      expect(await plans.rows(id, { limit: 10, state: 'failed' })).toMatchObject([
        { reason: 'the chat does not answer It was tried 5 times.' },
      ])
    })

    test('leaves rows to runs that wait for a person, and settles them later', async () => {
      const { planned, plans, state, sql, work, systems } = await open(ada, bob, missingAccount('eve'))
      const id = await planned()
      await plans.approve(id, { by })
      await work({ isOver: () => true })
      const runs = (await plans.rows(id, { limit: 10 })).map(({ run }) => run)
      const incident = JSON.stringify({ task: 'join:0', code: 'TARGET_FAILED', message: 'quota' })
      await sql(`update runs set state = 'waiting' where id = '${runs[0]}' returning id`)
      await sql(`update runs set state = 'incident', incident = '${incident}' where id = '${runs[1]}' returning id`)
      await sql(`update runs set state = 'denied', ended = 5 where id = '${runs[2]}' returning id`)
      await work()
      expect(await state(id)).toMatchObject({ plan: { state: 'applied' }, progress: { waiting: 2, skipped: 1 } })
      expect(await plans.rows(id, { limit: 10 })).toMatchObject([
        { state: 'waiting', reason: expect.stringContaining('approver') },
        { state: 'waiting', reason: expect.stringContaining('quota') },
        { state: 'skipped', reason: 'An approver denied the run.' },
      ])
      const next = await planned()
      await plans.approve(next, { by })
      await work({ isOver: () => true })
      expect(await plans.rows(next, { limit: 10, state: 'skipped' })).toMatchObject([
        { reason: `The run ${runs[0]} of an earlier plan has not ended.` },
        { reason: `The run ${runs[1]} of an earlier plan has not ended.` },
      ])
      await sql(`update runs set state = 'denied', ended = 6 where state = 'ready' returning id`)
      await sql(`update runs set state = 'completed', ended = 6 where id = '${runs[0]}' returning id`)
      await sql(`update runs set state = 'cancelled', ended = 6 where id = '${runs[1]}' returning id`)
      await sql(`update reconciliation_plans set due = 1 where id = '${id}' returning id`)
      systems.present.delete(ada.key)
      await work()
      expect(await state(id)).toMatchObject({
        plan: { state: 'applied' },
        progress: { waiting: 0, done: 1, failed: 1 },
      })
    })

    test('gives up when every row fails', async () => {
      const users = Array.from({ length: 30 }, (_, i) => missingAccount(`user-${i}`))
      const { systems, planned, plans, work, state } = await open(...users)
      const id = await planned()
      systems.workflow = undefined
      await plans.approve(id, { by })
      await work()
      const { plan, progress } = await state(id)
      expect(plan).toMatchObject({ state: 'failed', problem: expect.stringContaining('failed one after the other') })
      expect(progress.open).toBeGreaterThan(0)
    })

    test('follows the runs of a plan that failed', async () => {
      const { systems, planned, plans, work, state, endRuns, store } = await open(ada, bob)
      const id = await planned()
      await plans.approve(id, { by })
      await work({ isOver: () => true })
      const claim = await store.claim('w', minute)
      await store.fail(claim ?? { id, fence: 0 }, 'broken', [])
      systems.present.delete(ada.key)
      await endRuns('completed')
      await work()
      expect(await state(id)).toMatchObject({
        plan: { state: 'failed', problem: 'broken' },
        progress: { done: 1, failed: 1, started: 0 },
      })
      expect(await store.claim('w', minute)).toBeUndefined()
    })

    test('refuses a plan that only reports', async () => {
      const { planned, plans } = await open(missingAccount('ada', { action: 'report' }))
      const id = await planned()
      await expect(plans.approve(id, { by })).rejects.toMatchObject({
        code: 'CONFLICT',
        publicText: expect.stringContaining('nothing to apply'),
      })
    })
  })

  test('a person links an account by the names that the plan shows', async () => {
    const eve = missingAccount('eve', {
      kind: 'ambiguous',
      action: 'report',
      candidates: [
        { id: 'U1', login: 'eve' },
        { id: 'U2', login: 'eve2' },
      ],
    })
    const { planned, plans, audit } = await open(eve)
    await planned()
    const link = { reconciliation: 'chat', by, reason: 'asked her' }
    expect(await plans.link({ ...link, source: 'EVE', target: 'eve2' })).toEqual({
      source: 'id of eve',
      target: 'U2',
      unknown: [],
    })
    expect(await plans.link({ ...link, source: 'eve' })).toEqual({ source: 'id of eve', unknown: [] })
    expect(await plans.link({ ...link, source: 'x1', target: 'U9' })).toEqual({
      source: 'x1',
      target: 'U9',
      unknown: ['x1', 'U9'],
    })
    expect((await plans.links('chat', 10)).map(({ source, target }) => [source, target])).toEqual([
      ['id of eve', undefined],
      ['x1', 'U9'],
    ])
    expect(await plans.unlink('chat', 'x1', { by })).toBe(true)
    expect(await plans.differencesOf('eve')).toMatchObject([{ reconciliation: 'chat', row: { difference: eve } }])
    const [last] = (await audit.list({ limit: 1 })).rows
    expect(last).toMatchObject({ attribute: 'link', action: 'delete', subject: 'x1', requestor: 'Ada' })
  })
})
