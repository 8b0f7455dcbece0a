import { expect, test } from 'vitest'
import { onEachDatabase } from '#testing/databases/databases.ts'
import {
  auditRow,
  claimOne,
  commitOf,
  minute,
  newApproval,
  newRun,
  noLease,
  openApproval,
  outcomes,
  shown,
  stepRecord,
  workflowStores,
} from '#testing/databases/workflow-stores.ts'
import { userRef } from '#testing/workflows/user-ref.ts'
import { claimOf, type Run, type RunQuery } from '#workflows/record/run.ts'
import type { CancelRequest, NewRun } from './run-commit.ts'

const ids = (runs: readonly Run[]): string[] => runs.map(({ head }) => head.id)

const cancelling = (run: Run, more: Partial<CancelRequest> = {}): CancelRequest => ({
  id: run.head.id,
  fence: run.fence,
  cancellation: { by: 'admin', reason: 'no longer needed' },
  onlyUntouched: false,
  outcome: 'cancelled',
  effects: {},
  ...more,
})

onEachDatabase('runs', (freshUrl) => {
  const open = async () => workflowStores(await freshUrl())

  test('the text parameters of requests are read by run', async () => {
    const { one } = await open()
    const request = [
      ['group', 'staff\0'],
      ['WORKFLOW', { id: 'a' }],
    ]
    await one.runs.start(newRun('a', { data: { request } }))
    for (let i = 0; i < 60; i++) await one.runs.start(newRun(`b${i}`, { data: { request: [['group', `g${i}`]] } }))
    await one.runs.start(newRun('c'))
    const found = await one.runs.parametersOf(['a', ...Array.from({ length: 60 }, (_, i) => `b${i}`), 'c', 'no', '\0'])
    expect(found.size).toBe(62)
    expect(found.get('a')).toEqual(new Map([['group', 'staff\0']]))
    expect(found.get('b59')).toEqual(new Map([['group', 'g59']]))
    expect(found.get('c')).toEqual(new Map())
  })

  test('several runs are read at once', async () => {
    const { one, two } = await open()
    const started = Array.from({ length: 70 }, (_, i) => `r${i}`)
    for (const id of started) await one.runs.start(newRun(id))
    const found = await two.runs.several(['no', '\0', 'r0', ...started])
    expect(ids(found).sort()).toEqual(started.sort())
    expect(await two.runs.several(['no', 'r7'])).toMatchObject([{ state: 'ready', head: newRun('r7').head }])
    expect(await two.runs.several([])).toEqual([])
  })

  test('a started run can be read, listed, and claimed with its secret', async () => {
    const { one, two, woken } = await open()
    const run = newRun('a', {
      head: {
        caller: 'app',
        reason: 'new colleague',
        requestId: 'r-1',
        deadline: new Date(9_000_000_000_000),
        accessEnds: new Date(8_000_000_000_000),
      },
      secret: 'sealed',
      data: { user: { mail: ['a\0\ud800'] } },
    })
    expect(await one.runs.start(run)).toEqual({ kind: 'started' })
    expect(woken).toEqual(['a'])
    const { secret: _, state: __, ...visible } = run
    const found = await shown(two.runs, 'a')
    expect(found).toMatchObject({
      ...visible,
      state: 'ready',
      attempt: 0,
      fence: 0,
    })
    expect(found).not.toHaveProperty('secret')
    const { data: ___, ...listed } = found
    expect((await two.runs.list({ limit: 5 })).runs).toEqual([listed])
    expect(await two.runs.getWhole('a')).toEqual({ ...found, secret: 'sealed' })
    expect(await claimOne(two.runs)).toMatchObject({
      head: { id: 'a' },
      secret: 'sealed',
      state: 'running',
      attempt: 1,
      fence: 1,
    })
    expect(await one.runs.get('b')).toBeUndefined()
    expect(await one.runs.get('a\0')).toBeUndefined()
    expect(await one.runs.getWhole('b')).toBeUndefined()
    await expect(one.runs.start(newRun('a'))).rejects.toMatchObject({ code: 'CONFLICT' })
    await expect(one.runs.start(newRun('c', { head: { subject: 'a\0b' } }))).rejects.toMatchObject({
      code: 'BAD_REQUEST',
    })
  })

  test('a saved definition is never overwritten', async () => {
    const { one, two } = await open()
    await one.runs.saveDefinitions([{ hash: 'h', name: 'w', body: { tasks: [1] } }])
    await two.runs.saveDefinitions([{ hash: 'h', name: 'w', body: { tasks: [2] } }])
    expect(await two.runs.definition('h')).toEqual({ hash: 'h', name: 'w', body: { tasks: [1] } })
    expect(await two.runs.definition('other')).toBeUndefined()
  })

  test('prune deletes unused definitions, except those that an open run is pinned to', async () => {
    const { one, two, sql } = await open()
    const body = 'tasks'
    const names = ['own', 'called', 'old', 'ended', 'touched']
    await one.runs.saveDefinitions(names.map((hash) => ({ hash, name: hash, body })))
    await sql('update definitions set created = 1000')
    await one.runs.start(newRun('a', { head: { definition: 'own' }, data: { pins: [['c', 'called']] } }))
    await one.runs.start(newRun('b', { head: { definition: 'ended' }, state: { state: 'completed' } }))
    await one.runs.start(newRun('c', { head: { definition: 'x' }, data: { withinCall: true } }))
    await two.runs.saveDefinitions([{ hash: 'touched', name: 'touched', body: 'other' }])
    expect(await two.runs.pruneDefinitions(new Date(1000))).toBe(0)
    expect(await two.runs.pruneDefinitions(new Date(2000))).toBe(2)
    expect(await sql('select hash from definitions order by hash')).toMatchObject(
      ['called', 'own', 'touched'].map((hash) => ({ hash })),
    )
  })

  test('all consequences of a step are committed together', async () => {
    const { one, two } = await open()
    await one.runs.start(newRun('a', { secret: 'sealed' }))
    const claimed = await claimOne(one.runs)
    const effects = {
      steps: [stepRecord(1), stepRecord(2, { label: 'second', error: 'none\0', outcome: 'next' })],
      audit: [auditRow('audit-1')],
      timers: [{ id: 't', kind: 'wait', due: { inMillis: 0 }, run: 'a', data: { x: 1 } }],
      mails: [{ id: 'm', recipient: 'b@x.org', subject: 's', text: 't' }],
      grants: [{ id: 'g', target: 'people', subject: 'bob', kind: 'group', name: 'admins', expires: { inMillis: 1 } }],
      starts: [newRun('child')],
    } as const
    expect(await one.runs.commit({ ...commitOf(claimed, { state: 'waiting' }, effects), touched: true })).toBe(
      'waiting',
    )
    expect(await shown(two.runs, 'a')).toMatchObject({ state: 'waiting', touched: true, data: { step: 1 }, attempt: 0 })
    expect(await two.runs.steps('a')).toMatchObject([
      stepRecord(1),
      { ...stepRecord(2), label: 'second', error: 'none\ufffd', outcome: 'next' },
    ])
    expect((await two.audit.list({ limit: 5 })).rows).toHaveLength(1)
    expect(await two.timers.claim(5, minute)).toMatchObject([{ id: 't', kind: 'wait', run: 'a', data: { x: 1 } }])
    expect(await two.mails.claim(5, minute)).toMatchObject([{ id: 'm', recipient: 'b@x.org' }])
    expect(await two.grants.get('g')).toMatchObject({ state: 'active', name: 'admins' })
    expect((await claimOne(two.runs)).head.id).toBe('child')
    const [first] = await two.runs.steps('a')
    expect(await two.runs.steps('a', first?.id)).toHaveLength(1)
  })

  test('when one consequence cannot be written, nothing is', async () => {
    const { one } = await open()
    await one.runs.start(newRun('a'))
    const claimed = await claimOne(one.runs)
    const effects = { mails: [{ id: 'm', recipient: 'r', subject: 's', text: 't' }], starts: [newRun('a')] }
    await expect(one.runs.commit(commitOf(claimed, { state: 'completed' }, effects))).rejects.toMatchObject({
      code: 'CONFLICT',
    })
    expect(await one.mails.claim(1, minute)).toEqual([])
    expect((await shown(one.runs, 'a')).state).toBe('running')
  })

  test('a claim continues from step to step, and a signal is kept until the step that uses it', async () => {
    const { one } = await open()
    await one.runs.start(newRun('a', { secret: 'sealed', state: { state: 'waiting' } }))
    expect(await one.runs.signal('a', { approved: true }, {})).toBe(true)
    expect(await one.runs.signal('a', { approved: true }, {})).toBe(false)
    const lost = await claimOne(one.runs, noLease)
    const run = await claimOne(one.runs)
    expect([lost.signal, run.signal, run.secret]).toEqual([{ approved: true }, { approved: true }, 'sealed'])
    expect(await one.runs.commit(commitOf(run, { state: 'running', leaseMillis: noLease }))).toBe('running')
    const again = await claimOne(one.runs)
    expect(again).toMatchObject({ fence: run.fence + 1, attempt: 2, data: { step: 1 } })
    expect(again).not.toHaveProperty('signal')
    expect(again, 'a secret that the commit does not name is gone').not.toHaveProperty('secret')
  })

  test('an administrator retries or skips an incident that has not changed meanwhile', async () => {
    const { one, two } = await open()
    await one.runs.start(newRun('a'))
    const incident = { task: 't', code: 'TARGET_FAILED', message: 'no' }
    await one.runs.commit(commitOf(await claimOne(one.runs), { state: 'incident', incident }))
    const seen = await shown(one.runs, 'a')
    const tries = [one, two, one, two].map(({ runs }, i) =>
      runs.resume({ id: 'a', fence: seen.fence, effects: { audit: [auditRow(`retry-${i}`)] } }, { step: 7 }),
    )
    const { done, refused } = outcomes(await Promise.allSettled(tries))
    expect({ done, refused: [...new Set(refused)] }).toEqual({ done: 1, refused: ['VERSION_MISMATCH'] })
    expect((await one.audit.list({ limit: 9 })).rows).toHaveLength(1)
    const resumed = await shown(one.runs, 'a')
    expect(resumed).toMatchObject({ state: 'ready', attempt: 0, data: { step: 7 } })
    expect(resumed).not.toHaveProperty('incident')
    const again = one.runs.resume({ id: 'a', fence: resumed.fence, effects: {} })
    await expect(again).rejects.toMatchObject({ code: 'CONFLICT' })
    await expect(one.runs.resume({ id: 'x', fence: 0, effects: {} })).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('a run is cancelled once, with its approvals and timers', async () => {
    const { one, two } = await open()
    await one.runs.start(newRun('a', { secret: 'sealed', state: { state: 'waiting' } }), {
      approval: newApproval('ap'),
    })
    const seen = await shown(one.runs, 'a')
    const { done } = outcomes(
      await Promise.allSettled([one, two, one].map(({ runs }) => runs.cancel(cancelling(seen)))),
    )
    expect(done).toBe(1)
    expect(await shown(two.runs, 'a')).toMatchObject({
      state: 'cancelled',
      cancel: { by: 'admin', reason: 'no longer needed' },
      ended: expect.any(Date),
    })
    expect((await one.approvals.get('ap'))?.state).toBe('cancelled')
    expect(await one.timers.claim(5, minute)).toEqual([])
    const ended = await shown(one.runs, 'a')
    await expect(one.runs.cancel(cancelling(ended))).rejects.toMatchObject({ code: 'CONFLICT' })
  })

  test('a running run that is cancelled ends with its step, keeps the audit entries and opens no approval', async () => {
    const { one, two } = await open()
    await one.runs.start(newRun('a'))
    const claimed = await claimOne(one.runs)
    expect(await two.runs.cancel(cancelling(claimed))).toBe('running')
    expect(await one.runs.renew(claimOf(claimed), minute)).toBe(false)
    const next = { state: 'waiting', approval: newApproval('ap') } as const
    expect(await one.runs.commit(commitOf(claimed, next, { audit: [auditRow('x')] }))).toBe('cancelled')
    expect(await shown(two.runs, 'a')).toMatchObject({ state: 'cancelled', ended: expect.any(Date) })
    expect(await two.approvals.get('ap')).toBeUndefined()
    expect((await two.audit.list({ limit: 1 })).rows).toHaveLength(1)
  })

  test('onlyUntouched rejects the cancellation once a target was changed', async () => {
    const { one } = await open()
    for (const [id, touched] of [
      ['a', true],
      ['b', false],
    ] as const) {
      await one.runs.start(newRun(id, { touched, state: { state: 'waiting' } }))
    }
    const cancel = async (id: string) =>
      one.runs.cancel(cancelling(await shown(one.runs, id), { onlyUntouched: true, outcome: 'expired' }))
    await expect(cancel('a')).rejects.toMatchObject({ code: 'CONFLICT' })
    expect(await cancel('b')).toBe('expired')
    expect(await shown(one.runs, 'b')).not.toHaveProperty('cancel')
  })

  test('a timer acts once, in the transaction of its consequences', async () => {
    const { one, two } = await open()
    await one.runs.start(newRun('a', { state: { state: 'waiting' } }), {
      effects: { timers: [{ id: 't', kind: 'deadline', due: { inMillis: noLease }, run: 'a' }] },
    })
    const [stale] = await one.timers.claim(1, noLease)
    const [timer] = await two.timers.claim(1, minute)
    if (stale === undefined || timer === undefined) throw new Error('no timer')
    await expect(one.runs.signal('a', {}, { doneTimers: [stale] })).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
    expect((await shown(one.runs, 'a')).state).toBe('waiting')
    expect(await two.runs.signal('a', {}, { doneTimers: [timer] })).toBe(true)
    await expect(two.runs.record({ doneTimers: [timer] })).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
  })

  test('a queued run knows the run of its subject that is executed first', async () => {
    const { one } = await open()
    for (const id of ['a', 'b', 'c']) await one.runs.start(newRun(id, { head: { subject: 'bob' } }))
    await one.runs.start(newRun('w', { head: { subject: 'bob' }, state: { state: 'waiting' } }))
    await one.runs.start(newRun('other'))
    const ahead = async (id: string) => (await one.runs.ahead(id))?.head.id
    expect(await Promise.all(['a', 'b', 'c', 'w', 'other', 'none', 'x\0'].map(ahead))).toEqual([
      undefined,
      'a',
      'a',
      undefined,
      undefined,
      undefined,
      undefined,
    ])
    const [claimed] = await one.runs.claim('worker', 1, minute)
    expect([claimed?.head.id, await ahead('c'), await ahead('a')]).toEqual(['a', 'a', undefined])
  })

  test('lists the runs that changed, earliest first, with the users they concern', async () => {
    const { one, two } = await open()
    const since = await one.runs.now()
    const waiting = newRun('a', {
      head: { subject: 'bob', who: { requester: userRef('alice').identity, subject: userRef('bob').identity } },
      state: { state: 'waiting' },
    })
    await one.runs.start(waiting, { approval: newApproval('approval', { approvers: ['boss', 'deputy'].map(userRef) }) })
    await two.runs.start(newRun('b'))
    const { changes, isComplete } = await two.runs.changes(since, 10)
    expect(isComplete).toBe(true)
    expect(changes.map(({ id }) => id).sort()).toEqual(['a', 'b'])
    const [first] = changes.filter(({ id }) => id === 'a')
    expect(first).toMatchObject({ state: 'waiting' })
    const identities = (logins: readonly string[]) => logins.map((login) => userRef(login).identity).sort()
    expect(first?.users.toSorted()).toEqual(identities(['alice', 'bob']))
    expect(first?.approvers.toSorted()).toEqual(identities(['boss', 'deputy']))
    expect(await two.runs.changes(since, 1)).toMatchObject({ changes: [{}], isComplete: false })
    const later = new Date(since.getTime() + 3_600_000)
    expect(await two.runs.changes(later, 10)).toEqual({ changes: [], isComplete: true })
  })

  test('lists changes of runs with very many approvers as incomplete', async () => {
    const { one } = await open()
    const since = await one.runs.now()
    const approvers = Array.from({ length: 1_000 }, (_, i) => userRef(`boss${i}`))
    for (let i = 0; i < 11; i++) await openApproval(one, `${i}`, { approvers })
    expect((await one.runs.changes(since, 500)).isComplete).toBe(false)
  })

  test('lists runs in pages, by every filter', async () => {
    const { one } = await open()
    const all: NewRun[] = Array.from({ length: 12 }, (_, i) =>
      newRun(`${i}`, {
        head: {
          workflow: i % 2 === 0 ? 'even' : 'odd',
          requester: i < 6 ? 'Alice' : 'carol',
          ...(i % 3 === 0 ? { subject: 'Bob' } : {}),
        },
        ...(i % 3 === 0 ? { state: { state: 'waiting' } } : {}),
      }),
    )
    for (const run of all) await one.runs.start(run)
    const seen: string[] = []
    let after: string | undefined
    do {
      const page = await one.runs.list({ limit: 5, ...(after === undefined ? {} : { after }) })
      seen.push(...ids(page.runs))
      after = page.next
    } while (after !== undefined)
    expect(seen).toEqual(Array.from({ length: 12 }, (_, i) => `${11 - i}`))
    const found = async (query: Partial<RunQuery>) => ids((await one.runs.list({ limit: 99, ...query })).runs)
    expect(await found({ subject: 'bob' })).toEqual(['9', '6', '3', '0'])
    expect(await found({ requester: 'ALICE', name: 'odd' })).toEqual(['5', '3', '1'])
    expect(await found({ states: ['waiting'], name: 'even' })).toEqual(['6', '0'])
    expect(await found({ states: [] })).toEqual([])
    expect(await found({ subject: 'a\0' })).toEqual([])
    await expect(one.runs.list({ limit: 1, after: '1 or 1=1' })).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  })

  test('lists runs of a period, even if they are not numbered by their creation', async () => {
    const { one, sql } = await open()
    const hour = 60 * minute
    const base = Date.UTC(2030, 0, 1)
    const created = [0, 2, 4, 3.5, 6, 30].map((hours) => base + hours * hour)
    for (const [i, time] of created.entries()) {
      await one.runs.start(
        newRun(`${i}`, { head: { workflow: i % 2 === 0 ? 'even' : 'odd' }, state: { state: 'waiting' } }),
      )
      await sql(`update runs set created = ${time} where id = '${i}'`)
    }
    const at = (hours: number) => new Date(base + hours * hour)
    const found = async (query: Partial<RunQuery>) => ids((await one.runs.list({ limit: 99, ...query })).runs)
    expect(await found({ from: at(2), until: at(6) })).toEqual(['3', '2', '1'])
    expect(await found({ from: at(3.5), until: at(4) })).toEqual(['3'])
    expect(await found({ from: at(3.6) })).toEqual(['5', '4', '2'])
    expect(await found({ until: at(2) })).toEqual(['0'])
    expect(await found({ from: at(2), name: 'even' })).toEqual(['4', '2'])
    expect(await found({ from: at(0), name: 'even', states: ['ready'] })).toEqual([])
    const { next = '' } = await one.runs.list({ limit: 2, from: at(2), states: ['waiting', 'ready'] })
    expect(await found({ from: at(2), after: next })).toEqual(['3', '2', '1'])
    expect(await found({ from: at(31) })).toEqual([])
  })

  test('counts the open runs of workflows, and the incidents at targets', async () => {
    const { one } = await open()
    const incident = { task: 'w:0', code: 'TARGET_FAILED', message: 'no' }
    for (const [i, target] of ['crm', 'crm', 'mail', undefined].entries()) {
      await one.runs.start(newRun(`stuck ${i}`, { head: { workflow: 'join' } }))
      const at = target === undefined ? {} : { target }
      await one.runs.commit(commitOf(await claimOne(one.runs), { state: 'incident', incident: { ...incident, ...at } }))
    }
    await one.runs.start(newRun('waits', { head: { workflow: 'leave' }, state: { state: 'waiting' } }))
    await one.runs.start(newRun('other', { head: { workflow: 'other' } }))
    const counted = await one.runs.openByWorkflow(['join', 'leave', 'none', 'a\0'])
    expect([...counted].sort((a, b) => (a.name < b.name ? -1 : 1))).toEqual([
      { name: 'join', state: 'incident', count: 4 },
      { name: 'leave', state: 'waiting', count: 1 },
    ])
    expect(Object.fromEntries(await one.runs.incidentsByTarget())).toEqual({ crm: 2, mail: 1 })
    const found = async (query: Partial<RunQuery>) => ids((await one.runs.list({ limit: 99, ...query })).runs)
    expect(await found({ target: 'crm' })).toEqual(['stuck 1', 'stuck 0'])
    expect(await found({ target: 'crm', states: ['waiting'] })).toEqual([])
  })

  test('lists ended runs of a time in pages, the latest first', async () => {
    const { one, two, sql } = await open()
    for (const id of ['a', 'b', 'c', 'd', 'e']) await one.runs.start(newRun(id, { state: { state: 'completed' } }))
    await one.runs.start(newRun('open'))
    await sql(`update runs set ended = case id when 'a' then 100 when 'e' then 300 else 200 end where id <> 'open'`)
    const pages = async (since: number, until: number) => {
      const seen: string[][] = []
      let after: string | undefined
      do {
        const query = { since: new Date(since), until: new Date(until), limit: 2, ...(after && { after }) }
        const { runs, next } = await two.runs.listEnded(query)
        seen.push(ids(runs))
        after = next
      } while (after !== undefined)
      return seen
    }
    expect(await pages(0, 301)).toEqual([['e', 'd'], ['c', 'b'], ['a']])
    expect(await pages(200, 300)).toEqual([['d', 'c'], ['b']])
    expect(await pages(100, 200)).toEqual([['a']])
    const wrong = two.runs.listEnded({ since: new Date(0), until: new Date(1), limit: 2, after: 'x' })
    await expect(wrong).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  })

  test('lists the changes that figures count as unfinished', async () => {
    const { one, two } = await open()
    const resource = 'users User id 7'
    const incident = { task: 't', code: 'TARGET_FAILED', message: 'down' }
    await one.runs.start(newRun('asynchronous', { head: { subject: 'joe' }, touched: true }))
    // Only between two steps.
    expect((await two.runs.figures()).unfinished).toBe(0)
    const failed = { state: 'ready', due: { inMillis: minute }, attempt: 1 } as const
    await one.runs.commit({ ...commitOf(await claimOne(one.runs), failed), touched: true })
    for (const more of [{}, { resource, head: { subject: 'ada' } }]) {
      expect(await two.runs.hasUnfinished()).toBe(false)
      await one.runs.start(newRun(more.resource === undefined ? 'of no client' : 'stuck', { ...more, touched: true }))
      await one.runs.commit({ ...commitOf(await claimOne(one.runs), { state: 'incident', incident }), touched: true })
    }
    expect(await two.runs.hasUnfinished()).toBe(true)
    await one.runs.start(newRun('unchanged', { resource }))
    await one.runs.start(newRun('retried', { resource, touched: true }))
    await one.runs.start(newRun('ended', { resource, touched: true, state: { state: 'completed' } }))
    const executed = { state: 'running', leaseMillis: minute } as const
    await one.runs.start(newRun('executed', { resource, touched: true, state: executed }))
    const found = async (query: Partial<RunQuery>) =>
      ids((await two.runs.list({ unfinished: true, limit: 10, ...query })).runs)
    await one.runs.start(newRun('decided', { head: { subject: 'eve' }, touched: true, state: { state: 'waiting' } }))
    expect(await found({})).toEqual(['retried', 'stuck', 'of no client', 'asynchronous'])
    expect(await found({ states: ['ready', 'running'] })).toEqual(['retried', 'asynchronous'])
    expect(await found({ subject: 'Ada', name: 'create-user' })).toEqual(['stuck'])
    // The others, of every state.
    expect(await found({ unfinished: false })).toEqual(['decided', 'executed', 'ended', 'unchanged'])
    expect(await found({ unfinished: false, states: ['running', 'completed'] })).toEqual(['executed', 'ended'])
    expect(await found({ unfinished: false, subject: 'eve' })).toEqual(['decided'])
    expect((await two.runs.figures()).unfinished).toBe(4)
    // Its first attempt failed; it stays in the list while a worker tries again.
    const again = { state: 'ready', due: { inMillis: -minute }, attempt: 0 } as const
    await one.runs.commit({ ...commitOf(await shown(one.runs, 'executed'), again), touched: true })
    expect((await claimOne(one.runs)).head.id).toBe('executed')
    expect(await found({ states: ['running'] })).toEqual(['executed'])
    expect((await two.runs.figures()).unfinished).toBe(5)
  })

  test('figures count open runs and their age; prune deletes ended ones', async () => {
    const { one } = await open()
    expect(await one.runs.figures()).toEqual({ ready: 0, running: 0, waiting: 0, incident: 0, unfinished: 0 })
    await one.runs.start(newRun('old', { state: { state: 'ready', due: { inMillis: -5000 } } }))
    await one.runs.commit(commitOf(await claimOne(one.runs), { state: 'completed' }, { steps: [stepRecord(1)] }))
    await one.runs.start(newRun('due', { state: { state: 'ready', due: { inMillis: -5000 } } }))
    await one.runs.start(newRun('waiting', { state: { state: 'waiting' } }))
    const figures = await one.runs.figures()
    expect(figures).toMatchObject({ ready: 1, running: 0, waiting: 1, incident: 0, unfinished: 0 })
    expect(figures.oldestReadyMillis).toBeGreaterThanOrEqual(5000)
    expect(await one.runs.prune(new Date(0))).toBe(0)
    expect(await one.runs.prune(new Date(Date.now() + minute))).toBe(1)
    expect(await one.runs.get('old')).toBeUndefined()
    expect(await one.runs.steps('old')).toEqual([])
    expect(await one.runs.get('due')).toBeDefined()
  })
})
