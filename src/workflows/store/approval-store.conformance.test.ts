import { expect, test } from 'vitest'
import { type Identity, storedIdentity } from '#identity/identity.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import {
  auditRow,
  minute,
  newApproval,
  newRun,
  noLease,
  openApproval,
  outcomes,
  workflowStores,
} from '#testing/databases/workflow-stores.ts'
import { userRef } from '#testing/workflows/user-ref.ts'
import type { Decision, Reassignment } from './approval-store.ts'
import { listIdsOfApprover } from './approval-store.ts'

const who = (login: string): Identity => userRef(login).identity

const decision = (approval: string, more: Partial<Decision> = {}): Decision => ({
  approval,
  version: 1,
  outcome: 'approved',
  by: userRef('boss'),
  signal: { approval, approved: true },
  audit: [],
  ...more,
})

const reassignment = (approval: string, more: Partial<Reassignment> = {}): Reassignment => ({
  approval,
  version: 1,
  approvers: [userRef('chief')],
  rules: [],
  escalation: 1,
  audit: [],
  mails: [],
  timers: [],
  ...more,
})

/** The plan that PostgreSQL executed. */
interface Explained {
  readonly 'QUERY PLAN': readonly [{ readonly Plan: { readonly Plans: readonly Readonly<Record<string, unknown>>[] } }]
}

const ids = (approvals: readonly { readonly id: string }[]): string[] => approvals.map(({ id }) => id)

onEachDatabase('approvals', (freshUrl) => {
  const open = async () => workflowStores(await freshUrl())

  test('an opened approval can be read, with the fields of its run', async () => {
    const { one, two } = await open()
    const head = { subject: 'bob', caller: 'svc', reason: 'because', accessEnds: new Date(8_000_000_000_000) }
    const run = newRun('r', { head, state: { state: 'waiting' } })
    await one.runs.start(run, {
      approval: newApproval('a', {
        approvers: [userRef('Boss'), userRef('boss'), userRef('deputy')],
        newAccount: true,
      }),
    })
    const found = await two.approvals.get('a')
    expect(found).toMatchObject({
      id: 'a',
      run: run.head,
      step: 1,
      label: 'Manager approval',
      state: 'open',
      allowSelf: false,
      rules: [{ scope: 'group', constraint: 'managers' }],
      data: { note: 'please' },
      escalation: 0,
      version: 1,
    })
    expect(found?.approvers).toEqual([userRef('boss'), userRef('deputy')])
    const listed = { id: 'a', run: run.head, newAccount: true }
    expect(await two.approvals.listOfRun('r')).toMatchObject([listed])
    expect((await two.approvals.listForApprovers([who('boss')], { limit: 5 })).approvals).toMatchObject([listed])
    expect((await two.approvals.listOpen(new Date(Date.now() + minute), { limit: 5 })).approvals).toMatchObject([
      listed,
    ])
    expect(await two.approvals.get('x')).toBeUndefined()
    expect(await two.approvals.get('\0')).toBeUndefined()
    expect(await two.approvals.figures()).toMatchObject({ open: 1, oldestMillis: expect.any(Number) })
  })

  test('a decision, the ready run, audit, mails and the end of timers are one commit', async () => {
    const { one, two, woken } = await open()
    await openApproval(one, 'a')
    woken.length = 0
    const decided = await two.approvals.decide(
      decision('a', {
        onBehalfOf: 'chief',
        comment: 'fine\0',
        audit: [auditRow('x', { approval: 'a', reason: 'fine' })],
        mails: [{ id: 'm', recipient: 'r', subject: 's', text: 't' }],
      }),
    )
    expect(decided).toMatchObject({
      state: 'approved',
      decision: { at: expect.any(Date), by: userRef('boss'), onBehalfOf: 'chief', comment: 'fine\ufffd' },
      version: 2,
    })
    expect(woken).toEqual(['run of a'])
    expect(await one.timers.claim(5, minute)).toEqual([])
    expect((await one.audit.list({ limit: 5 })).rows).toMatchObject([{ approval: 'a', reason: 'fine' }])
    expect(await one.mails.claim(5, minute)).toHaveLength(1)
    expect(await one.runs.claim('w', 5, minute)).toMatchObject([{ signal: { approval: 'a', approved: true } }])
    expect((await one.approvals.listForApprovers([who('boss')], { limit: 5 })).approvals).toEqual([])
  })

  test("a user's decisions are listed in pages, the latest first", async () => {
    const { one } = await open()
    for (const id of ['a', 'b', 'c', 'd']) await openApproval(one, id)
    await one.approvals.decide(decision('c'))
    await one.approvals.decide(decision('a', { outcome: 'denied', comment: 'no' }))
    await one.approvals.decide(decision('b', { by: userRef('chief') }))
    const list = (after?: string) =>
      one.approvals.listDecidedBy([who('boss')], { limit: 1, ...(after === undefined ? {} : { after }) })
    const all = await one.approvals.listDecidedBy([who('boss'), who('chief')], { limit: 5 })
    expect(all.approvals.map(({ id }) => id).sort()).toEqual(['a', 'b', 'c'])
    expect(all.next).toBeUndefined()
    const first = await list()
    const second = await list(first.next)
    expect([...first.approvals, ...second.approvals].map(({ id }) => id).sort()).toEqual(['a', 'c'])
    expect(second.next).toBeUndefined()
    expect(all.approvals.find(({ id }) => id === 'a')).toMatchObject({
      state: 'denied',
      decision: { by: userRef('boss'), comment: 'no' },
    })
    for (const after of ['x', '1', '.a', '1.\0'])
      await expect(list(after)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  })

  test('the latest decisions are listed with the time that they took, without cancelled approvals', async () => {
    const { one } = await open()
    for (const id of ['a', 'b', 'c']) await openApproval(one, id)
    await one.approvals.decide(decision('a'))
    await one.approvals.decide(decision('b', { outcome: 'cancelled' }))
    expect(await one.approvals.latestDecisions()).toEqual([{ workflow: 'create-user', millis: expect.any(Number) }])
  })

  test('one of several concurrent decisions succeeds, and the others get CONFLICT', async () => {
    const { one, two } = await open()
    for (let round = 0; round < 10; round++) {
      const id = `a${round}`
      await openApproval(one, id)
      const tries = Array.from({ length: 6 }, (_, i) =>
        (i % 2 === 0 ? one : two).approvals.decide(
          decision(id, {
            outcome: i % 3 === 0 ? 'denied' : 'approved',
            by: userRef(`${i}`),
            audit: [auditRow(`${id}-${i}`)],
          }),
        ),
      )
      const { done, refused } = outcomes(await Promise.allSettled(tries))
      expect({ done, refused: [...new Set(refused)] }).toEqual({ done: 1, refused: ['CONFLICT'] })
    }
    expect((await one.audit.list({ limit: 100 })).rows).toHaveLength(10)
    expect(await one.runs.claim('w', 100, minute)).toHaveLength(10)
  })

  test('a decision that races an escalation is rejected, or comes first', async () => {
    const { one, two } = await open()
    for (let round = 0; round < 10; round++) {
      const id = `a${round}`
      await openApproval(one, id)
      const [timer] = await one.timers.claim(1, minute)
      if (timer === undefined) throw new Error('no timer')
      const [decided, escalated] = await Promise.allSettled([
        one.approvals.decide(decision(id)),
        two.approvals.reassign(reassignment(id, { timer })),
      ])
      const found = await one.approvals.get(id)
      if (decided.status === 'fulfilled') {
        expect(escalated).toMatchObject({ status: 'rejected', reason: { code: 'CONFLICT' } })
        expect(found).toMatchObject({ state: 'approved', escalation: 0 })
      } else {
        expect(decided.reason).toMatchObject({ code: 'VERSION_MISMATCH' })
        expect(found).toMatchObject({ state: 'open', escalation: 1, approvers: [userRef('chief')], version: 2 })
        await one.approvals.decide(decision(id, { version: 2, by: userRef('chief') }))
      }
    }
    expect(await one.timers.claim(50, noLease)).toEqual([])
  })

  test('a decision that races the end of its run is rejected, or comes first', async () => {
    const { one, two } = await open()
    for (let round = 0; round < 10; round++) {
      const id = `a${round}`
      await openApproval(one, id)
      const [decided, cancelled] = await Promise.allSettled([
        one.approvals.decide(decision(id)),
        two.runs.cancel({
          id: `run of ${id}`,
          fence: 0,
          cancellation: { by: 'admin' },
          onlyUntouched: false,
          outcome: 'cancelled',
          effects: {},
        }),
      ])
      const state = (await one.approvals.get(id))?.state
      const run = (await one.runs.get(`run of ${id}`))?.state
      if (decided.status === 'fulfilled') {
        expect({ state, run }).toEqual({ state: 'approved', run: 'ready' })
        expect(cancelled).toMatchObject({ status: 'rejected', reason: { code: 'VERSION_MISMATCH' } })
      } else {
        expect(decided.reason).toMatchObject({ code: 'CONFLICT' })
        expect({ state, run }).toEqual({ state: 'cancelled', run: 'cancelled' })
      }
    }
  })

  test('a reassigned approval leaves the list of the previous approvers, and mails the new ones once', async () => {
    const { one, two } = await open()
    await openApproval(one, 'a')
    const [timer] = await one.timers.claim(1, noLease)
    if (timer === undefined) throw new Error('no timer')
    const timers = [{ id: 't2', kind: 'escalation', due: { inMillis: noLease } }]
    const mails = [{ id: 'm', recipient: 'r', subject: 's', text: 't' }]
    const [taken] = await two.timers.claim(1, minute)
    const change = reassignment('a', { timers, mails, rules: ['next'] })
    await expect(one.approvals.reassign({ ...change, timer })).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
    if (taken === undefined) throw new Error('no timer')
    const given = await two.approvals.reassign({ ...change, timer: taken })
    expect(given).toMatchObject({
      approvers: [userRef('chief')],
      rules: ['next'],
      escalation: 1,
      version: 2,
      state: 'open',
    })
    expect(ids((await one.approvals.listForApprovers([who('boss'), who('deputy')], { limit: 5 })).approvals)).toEqual(
      [],
    )
    expect(ids((await one.approvals.listForApprovers([who('CHIEF')], { limit: 5 })).approvals)).toEqual(['a'])
    expect(await one.mails.claim(5, minute)).toHaveLength(1)
    expect(await one.timers.claim(5, minute)).toMatchObject([{ id: 't2', approval: 'a', run: 'run of a' }])
    await expect(one.approvals.decide(decision('x'))).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('an approval that is weeks old can still be decided', async () => {
    const { one, sql } = await open()
    await openApproval(one, 'a', { timers: [] })
    await sql('update approvals set opened = opened - 2592000000')
    const week = new Date(Date.now() - 7 * 24 * 60 * minute)
    expect(ids((await one.approvals.listOpen(week, { limit: 5 })).approvals)).toEqual(['a'])
    expect((await one.approvals.decide(decision('a'))).state).toBe('approved')
    expect((await one.approvals.listOpen(new Date(), { limit: 5 })).approvals).toEqual([])
  })

  test('lists open approvals of all users by workflow, approver and age, with their approvers', async () => {
    const { one, sql } = await open()
    for (const [i, approver] of ['boss', 'deputy', 'boss'].entries()) {
      await one.runs.start(
        newRun(`r${i}`, { head: { workflow: i === 2 ? 'leave' : 'join' }, state: { state: 'waiting' } }),
        {
          approval: newApproval(`a${i}`, { approvers: [userRef(approver)], timers: [] }),
        },
      )
    }
    const crowd = Array.from({ length: 12 }, (_, i) => userRef(`user-${i + 10}`))
    await openApproval(one, 'b', { approvers: crowd, timers: [] })
    await sql("update approvals set opened = 1000 where id = 'a0'")
    await sql("update approvals set escalation = 1 where id = 'a1'")
    const found = async (query: object) => ids((await one.approvals.listOpenOf({ limit: 9, ...query })).approvals)
    expect(await found({})).toEqual(['a0', 'a1', 'a2', 'b'])
    expect(await found({ workflow: 'join' })).toEqual(['a0', 'a1'])
    expect(await found({ approvers: [who('BOSS')] })).toEqual(['a0', 'a2'])
    expect(await found({ approvers: [who('boss')], workflow: 'leave' })).toEqual(['a2'])
    expect(await found({ overdueSince: new Date(2000) })).toEqual(['a0', 'a1'])
    expect(await found({ workflow: 'a\0' })).toEqual([])
    expect(await found({ approvers: [] })).toEqual([])
    const { approvals, next } = await one.approvals.listOpenOf({ limit: 3 })
    expect(approvals[1]).toMatchObject({ run: { workflow: 'join' }, approvers: ['deputy'], hasMore: false })
    expect((await one.approvals.listOpenOf({ limit: 3, after: next ?? '' })).approvals).toMatchObject([
      { id: 'b', approvers: crowd.slice(0, 10).map(({ login }) => login), hasMore: true },
    ])
    await one.approvals.decide(decision('a0'))
    expect(await found({ workflow: 'join' })).toEqual(['a1'])
  })

  test('pages for several approvers contain each approval once, oldest first', async () => {
    const { one } = await open()
    for (let i = 10; i < 40; i++) {
      await openApproval(one, `${i}`, {
        approvers: i % 3 === 0 ? [userRef('boss'), userRef('deputy')] : [userRef(i % 3 === 1 ? 'boss' : 'deputy')],
      })
    }
    const seen: string[] = []
    let after: string | undefined
    do {
      const page = await one.approvals.listForApprovers(['Boss', 'deputy', 'nobody'].map(who), {
        limit: 7,
        ...(after === undefined ? {} : { after }),
      })
      seen.push(...ids(page.approvals))
      after = page.next
    } while (after !== undefined)
    expect(seen).toEqual(Array.from({ length: 30 }, (_, i) => `${i + 10}`))
    expect((await one.approvals.listForApprovers([who('boss')], { limit: 99 })).approvals).toHaveLength(20)
    expect((await one.approvals.listForApprovers([], { limit: 9 })).approvals).toEqual([])
    const crowd = Array.from({ length: 201 }, (_, i) => who(`${i}`))
    await expect(one.approvals.listForApprovers(crowd, { limit: 9 })).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    await expect(one.approvals.listForApprovers([who('boss')], { limit: 9, after: '\0' })).rejects.toMatchObject({
      code: 'BAD_REQUEST',
    })
  })

  test('with 10,000 open approvals, a page of one approver reads only its own rows', async () => {
    const { one, sql, dialect } = await open()
    const count = 10_000
    await one.runs.start(newRun('r', { state: { state: 'waiting' } }))
    const numbers = `with recursive n(i) as (select 1 union all select i + 1 from n where i < ${count})`
    const padded = dialect === 'sqlite' ? "printf('%06d', i)" : "lpad(i::text, 6, '0')"
    await sql(`insert into approvals (id, run, step, label, state, opened, allow_self, rules, data, escalation, version)
      ${numbers} select ${padded}, 'r', 1, 'l', 'open', 1, 0, '[]', '{}', 0, 1 from n`)
    await sql(`insert into approval_approvers (approval, approver_key, approver, open)
      ${numbers} select ${padded}, '${who('boss')}', 'Boss', 1 from n`)
    await sql(`insert into approval_approvers (approval, approver_key, approver, open)
      ${numbers} select ${padded}, '${who('busy')}' || (i % 100), 'Busy', case when i % 200 < 100 then 1 else 0 end from n`)
    for (const table of ['runs', 'approvals', 'approval_approvers']) await sql(`analyze ${table}`)
    const first = await one.approvals.listForApprovers([who('boss')], { limit: 20 })
    expect(ids(first.approvals)).toEqual(Array.from({ length: 20 }, (_, i) => `${i + 1}`.padStart(6, '0')))
    const far = await one.approvals.listForApprovers([who('boss'), storedIdentity(`${who('busy')}7`)], {
      limit: 20,
      after: '009900',
    })
    expect(far.approvals[0]?.id).toBe('009901')

    const query = listIdsOfApprover.query(dialect, { approverKey: who('boss'), after: '005000', limit: 21 })
    const values = query.params.map((value) => (typeof value === 'number' ? String(value) : `'${value}'`))
    let next = 0
    const text = query.sql.replace(/\?|\$(\d+)/g, (_, number) => values[number ? Number(number) - 1 : next++] ?? '')
    if (dialect === 'sqlite') {
      const plan = (await sql(`explain query plan ${text}`)).map((row) => String(row['detail']))
      expect(plan).toEqual([
        expect.stringMatching(
          /^SEARCH approval_approvers USING COVERING INDEX approval_approvers_open \(.*approval>\?\)$/,
        ),
      ])
    } else {
      const [row] = (await sql(`explain (analyze, format json) ${text}`)) as unknown as [Explained]
      const [{ Plan: plan }] = row['QUERY PLAN']
      expect(plan.Plans).toMatchObject([
        {
          'Index Name': 'approval_approvers_open',
          'Node Type': expect.stringMatching(/^Index (Only )?Scan$/),
          'Actual Rows': 21,
        },
      ])
      expect(plan.Plans[0]?.['Rows Removed by Filter'] ?? 0).toBe(0)
    }
  })
})
