import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { readAddress } from '#database/databases.ts'
import { Attributes } from '#identity/attributes.ts'
import { entryIdentity } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { ApprovalRequest } from '#sdk/workflow/approval-request.ts'
import { next, type TaskContext, type TaskOutcome } from '#sdk/workflow/workflow-task.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { runSql } from '#testing/databases/postgres.ts'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import { dyingStore, openDurable } from '#testing/workflows/durable-fixture.ts'
import { userRef } from '#testing/workflows/user-ref.ts'
import { subjectQueue } from '#workflows/steps/workflow-services.ts'

const provision = (extra = {}) => ({ taskType: 'provision', target: 'store', sync: true, ...extra })
const addMail = { taskType: 'addAttribute', name: 'mail', value: 'a@example.com' }
const asynchronous = { asynchronous: true } as const

const request: ApprovalRequest = { label: 'Manager', approvers: [], allowSelf: false, escalations: [] }

/** Asks once; then returns the decision. */
const approval = ({ signal, request: map }: TaskContext): TaskOutcome => {
  if (signal?.kind !== 'approval') return { kind: 'wait', approval: request }
  map.set('decidedBy', signal.by ?? 'nobody')
  return signal.approved
    ? { kind: 'branch', branch: 'onSuccess' }
    : { kind: 'branch', branch: 'onFailure', end: 'denied' }
}

const approvals = {
  open: async (_request: ApprovalRequest, { step }: { readonly step: number }) => ({
    id: `approval-${step}-${Math.random()}`,
    step,
    label: 'Manager',
    approvers: [userRef('boss')],
    allowSelf: false,
    rules: [],
    data: {},
    timers: [],
    mails: [],
  }),
}

/** Every text in the database. */
async function everything(url: string): Promise<string> {
  const { dialect, address } = readAddress(url)
  const tables = ['runs', 'steps', 'definitions', 'approvals', 'timers', 'mails', 'audit', 'idempotency']
  const rows = async (table: string): Promise<unknown> => {
    if (dialect === 'postgres') return await runSql(url, `select * from ${table}`)
    const database = new DatabaseSync(address)
    try {
      return database.prepare(`select * from ${table}`).all()
    } finally {
      database.close()
    }
  }
  return JSON.stringify(await Promise.all(tables.map(rows)))
}

onEachDatabase('durable runs', (freshUrl) => {
  describe('an asynchronous run', () => {
    test('that sets a password ends sessions with the commit of its step, even after a crash before it', async () => {
      const url = await freshUrl()
      const store = new MemoryTarget()
      const process = await openDurable(url, {
        workflows: { w: [provision({ setPassword: true })] },
        targets: { store },
      })
      const { sessions, audit } = process.storage
      const session = (id: string) => ({
        id,
        publicId: `public ${id}`,
        context: 'c',
        application: 'portal',
        owner: entryIdentity('people', '1'),
        userID: 'JJackson',
        data: {},
        created: new Date(),
        touched: new Date(),
        idleSeconds: 600,
      })
      for (const id of ['here', 'elsewhere']) await sessions.create(session(id))
      const changed = { runs: dyingStore(process.storage.runs, 'before-commit'), subjects: subjectQueue() }
      process.worker({ leaseMillis: 500 }, changed)
      const { id } = await process.run('w', { ...asynchronous, password: 'hunter2', session: 'public here' })
      for (const end = Date.now() + 15_000; store.passwords.get('jjackson') === undefined; await delay(20)) {
        if (Date.now() > end) throw new Error('the password was not set')
      }
      expect(await sessions.find('elsewhere', new Date())).toBeDefined()
      process.worker()
      await process.settled(id, 'completed')
      expect(await sessions.find('elsewhere', new Date())).toBeUndefined()
      expect(await sessions.find('here', new Date())).toBeDefined()
      const { rows } = await audit.list({ workflowId: id, limit: 50 })
      expect(rows.filter(({ kind }) => kind === 'session')).toMatchObject([
        { action: 'delete', subject: 'JJackson', target: 'portal', value: 'public elsewhere', requestor: 'caller' },
      ])
    })

    test('is stored first, then executed, with its timeline and its audit', async () => {
      const store = new MemoryTarget()
      const workflows = { w: [addMail, provision(), { taskType: 'addGroup', name: 'g' }, provision()] }
      const process = await openDurable(await freshUrl(), { workflows, targets: { store } })
      const { id, status, changes } = await process.run('w', {
        ...asynchronous,
        head: { requestId: 'r', caller: 'api' },
      })
      expect({ status, changes }).toEqual({ status: 'accepted', changes: 0 })
      expect(store.calls).toEqual([])
      expect(await process.storage.runs.get(id)).toMatchObject({ state: 'ready', touched: false })
      process.worker()
      expect(await process.settled(id)).toMatchObject({ state: 'completed', touched: true })
      expect(store.stored('jjackson')).toEqual({ attributes: { mail: ['a@example.com'] }, groups: ['g'] })
      const steps = await process.storage.runs.steps(id)
      expect(steps.map(({ number, attempt, task, outcome }) => [number, attempt, task, outcome])).toEqual([
        [1, 1, 'w:0', 'next'],
        [2, 1, 'w:1', 'next'],
        [3, 1, 'w:2', 'next'],
        [4, 1, 'w:3', 'next'],
      ])
      const { rows } = await process.storage.audit.list({ workflowId: id, limit: 50 })
      expect(rows.map(({ attribute }) => attribute).sort()).toEqual(['groups', 'mail', 'userID'])
      expect(rows[0]).toMatchObject({ requestor: 'caller', caller: 'api', requestId: 'r' })
    })

    test('keeps its secrets encrypted until they are used, and then deletes them', async () => {
      const url = await freshUrl()
      const store = new MemoryTarget()
      let down = true
      store.before = () => {
        if (down) throw new GatewayError('TARGET_UNREACHABLE', 'down')
      }
      const process = await openDurable(url, {
        workflows: { w: [provision({ setPassword: true })] },
        targets: { store },
      })
      const { id } = await process.run('w', {
        ...asynchronous,
        password: 'hunter2',
        attributes: { pinCode: ['0815-pin'] },
      })
      process.worker({ retries: { attempts: 1, unknownAttempts: 1, firstMillis: 1, mostMillis: 1 } })
      const run = await process.settled(id, 'incident')
      expect(await everything(url)).not.toMatch(/hunter2/)
      expect(await everything(url)).toContain('g1.')
      down = false
      await process.runs.retry({ id, fence: run.fence, by: userRef('admin') })
      await process.settled(id, 'completed')
      expect(store.passwords.get('jjackson')).toBe('hunter2')
      expect(await everything(url)).not.toMatch(/hunter2|g1\./)
    })

    test('is not overtaken by a call about the same subject, even while it is retried', async () => {
      const store = new MemoryTarget()
      let failures = 1
      store.before = ({ method }) => {
        if (method === 'createUser' && failures-- > 0) throw new GatewayError('TARGET_UNREACHABLE', 'down')
      }
      const workflows = { w: [provision()], gone: [{ taskType: 'delete', target: 'store' }] }
      const process = await openDurable(await freshUrl(), { workflows, targets: { store } })
      const { id } = await process.run('w', asynchronous)
      process.worker({ retries: { attempts: 4, unknownAttempts: 2, firstMillis: 9_000, mostMillis: 9_000 } })
      await expect.poll(() => failures).toBe(0)
      await process.settled(id, 'ready')
      const user = { userID: 'jjackson', attributes: new Attributes(), groups: [] }
      const call = { head: { workflow: 'gone', requester: 'caller' }, params: {}, user, kept: true }
      await expect(
        process.runs.run({ head: { workflow: 'gone', requester: 'caller' }, params: {}, user }),
      ).rejects.toMatchObject({
        code: 'TARGET_UNREACHABLE',
        retryAfter: 5,
      })
      expect(store.methods()).not.toContain('deleteUser')
      const key = { scope: 's', key: 'k', bodyHash: 'h' }
      const behind = await process.runs.start(call, key)
      expect(behind).toMatchObject({ kind: 'started', result: { status: 'accepted' } })
      expect(await process.runs.start(call, key)).toMatchObject({ kind: 'repeated', result: { status: 'accepted' } })
      await process.settled(id, 'completed')
      if ('result' in behind) await process.settled(behind.result.id, 'completed')
      expect(store.stored('jjackson')).toBeUndefined()
      expect(await process.runs.start(call)).toMatchObject({ kind: 'started', result: { status: 'completed' } })
    })

    test('returns the same response when it is repeated under its key', async () => {
      const store = new MemoryTarget()
      const process = await openDurable(await freshUrl(), { workflows: { w: [provision()] }, targets: { store } })
      const user = { userID: 'u', attributes: new Map() as never, groups: [] }
      const { Attributes } = await import('#identity/attributes.ts')
      const head = { workflow: 'w', requester: 'c' }
      const call = { head, params: {}, user: { ...user, attributes: new Attributes() } }
      const key = { scope: 'c', key: 'k', bodyHash: 'b' }
      for (const more of [asynchronous, {}]) {
        const own = { ...key, key: JSON.stringify(more) }
        const first = await process.runs.start({ ...call, ...more }, own)
        if (first.kind !== 'started') throw new Error(first.kind)
        const { written: _, ...result } = first.result
        expect(await process.runs.start({ ...call, ...more }, own)).toEqual({ kind: 'repeated', result })
        expect(await process.runs.start({ ...call, ...more }, { ...own, bodyHash: 'other' })).toEqual({
          kind: 'other-body',
        })
      }
      expect(store.methods().filter((method) => method === 'createUser').length).toBe(1)
    })

    test('a call that failed frees its key', async () => {
      const store = new MemoryTarget()
      const process = await openDurable(await freshUrl(), { workflows: { w: [provision()] }, targets: { store } })
      const { Attributes } = await import('#identity/attributes.ts')
      const call = {
        head: { workflow: 'w', requester: 'c' },
        params: {},
        user: { userID: 'u', attributes: new Attributes(), groups: [] },
      }
      const key = { scope: 'c', key: 'k', bodyHash: 'b' }
      store.before = () => {
        throw new GatewayError('TARGET_UNREACHABLE', 'down')
      }
      await expect(process.runs.start(call, key)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
      store.before = () => {}
      expect(await process.runs.start(call, key)).toMatchObject({ kind: 'started', result: { status: 'completed' } })
    })
  })

  describe('a worker that dies', () => {
    const workflows = { w: [addMail, provision(), { taskType: 'addGroup', name: 'g' }, provision()] }

    test.each(['after-claim', 'before-target', 'before-commit', 'after-commit'] as const)(
      '%s: another continues, and nothing is done twice',
      async (point) => {
        const url = await freshUrl()
        const store = new MemoryTarget()
        const process = await openDurable(url, { workflows, targets: { store } })
        const { id } = await process.run('w', asynchronous)
        const lease = { leaseMillis: 1_500, sweepMillis: 20 }
        if (point === 'after-claim') await process.storage.runs.claim('dead', 10, 1_500)
        else {
          const changed = { runs: dyingStore(process.storage.runs, point), subjects: subjectQueue() }
          process.worker({ ...lease, drainMillis: 1 }, changed)
          const reached = point === 'before-target' ? 'findUser' : 'createUser'
          await expect.poll(() => store.methods().includes(reached)).toBe(true)
          await delay(50)
        }
        const other = await openDurable(url, { workflows, targets: { store } })
        other.worker(lease)
        await other.settled(id, 'completed')
        expect(store.methods().filter((method) => method === 'createUser').length).toBe(1)
        expect(store.stored('jjackson')).toEqual({ attributes: { mail: ['a@example.com'] }, groups: ['g'] })
        const keys = store.calls.map(({ request }) => request.idempotencyKey)
        expect([...new Set(keys)]).toEqual([`${id}/2`, `${id}/4`])
        const steps = await other.storage.runs.steps(id)
        expect([...new Set(steps.map(({ number }) => number))]).toEqual([1, 2, 3, 4])
        const { rows } = await other.storage.audit.list({ workflowId: id, limit: 50 })
        expect(rows.map(({ attribute }) => attribute).sort()).toEqual(['groups', 'mail', 'userID'])
        expect((await other.storage.audit.verify()).problems).toEqual([])
      },
    )

    test('in the step repeatedly, after it stored its planned changes, causes an incident too', async () => {
      const store = new MemoryTarget()
      const url = await freshUrl()
      const process = await openDurable(url, { workflows: { w: [provision()] }, targets: { store } })
      const { id } = await process.run('w', asynchronous)
      for (let i = 0; i < 4; i++) {
        const changed = { runs: dyingStore(process.storage.runs, 'before-target'), subjects: subjectQueue() }
        const worker = process.worker({ leaseMillis: 1, drainMillis: 1 }, changed)
        const attempts = async () => (await process.storage.runs.get(id))?.data['attempts']
        await expect.poll(attempts).toBe(i + 1)
        await worker.close()
        await delay(20)
      }
      process.worker()
      expect(await process.settled(id)).toMatchObject({ state: 'incident', incident: { code: 'WORKER_LOST' } })
      expect(store.stored('jjackson')).toBeUndefined()
    })

    test('repeatedly causes an incident', async () => {
      const store = new MemoryTarget()
      const process = await openDurable(await freshUrl(), { workflows, targets: { store } })
      const { id } = await process.run('w', asynchronous)
      for (let i = 0; i < 4; i++) expect((await process.storage.runs.claim('dead', 1, -1)).length).toBe(1)
      process.worker()
      expect(await process.settled(id)).toMatchObject({ state: 'incident', incident: { code: 'WORKER_LOST' } })
      expect(store.calls).toEqual([])
    })

    test('a slow worker that lost its run commits nothing, and its changes are in the audit', async () => {
      const url = await freshUrl()
      const store = new MemoryTarget()
      const gate = Promise.withResolvers<void>()
      let slow = true
      const tasks = {
        slow: async ({ forTarget }: TaskContext) => {
          const target = forTarget('store')
          const mine = slow
          slow = false
          if (mine) await gate.promise
          target.audit({ subject: 'attribute', action: 'add', attribute: mine ? 'first' : 'second' })
          return next
        },
      }
      const options = { workflows: { w: [{ taskType: 'slow' }] }, targets: { store }, tasks }
      const process = await openDurable(url, options)
      const { id } = await process.run('w', asynchronous)
      process.worker({ leaseMillis: 150 }, { runs: dyingStore(process.storage.runs), subjects: subjectQueue() })
      await expect.poll(() => slow).toBe(false)
      const other = await openDurable(url, options)
      other.worker()
      const completed = await other.settled(id, 'completed')
      gate.resolve()
      const attributes = async () =>
        (await other.storage.audit.list({ workflowId: id, limit: 10 })).rows.map(({ attribute }) => attribute)
      await expect.poll(attributes).toEqual(['first', 'second'])
      expect(await other.storage.runs.get(id)).toEqual(completed)
      expect((await other.storage.runs.steps(id)).length).toBe(1)
    })
  })

  describe('claims', () => {
    test('a long step keeps its run', async () => {
      const url = await freshUrl()
      let executed = 0
      const tasks = {
        long: async () => {
          executed++
          await delay(2_200)
          return next
        },
      }
      const options = { workflows: { w: [{ taskType: 'long' }] }, tasks }
      const [one, two] = [await openDurable(url, options), await openDurable(url, options)]
      const { id } = await one.run('w', asynchronous)
      one.worker({ leaseMillis: 1_000 })
      two.worker({ leaseMillis: 1_000 })
      expect(await one.settled(id)).toMatchObject({ state: 'completed', fence: 1 })
      expect(executed).toBe(1)
    })

    test('a step that takes too long is aborted, and retried', async () => {
      const aborted: unknown[] = []
      let calls = 0
      const tasks = {
        stuck: async ({ forTarget }: TaskContext) => {
          if (++calls > 1) return next
          const { signal } = forTarget('store')
          signal?.addEventListener('abort', () => aborted.push(signal.reason))
          return await new Promise<TaskOutcome>(() => {})
        },
      }
      const process = await openDurable(await freshUrl(), { workflows: { w: [{ taskType: 'stuck' }] }, tasks })
      const { id } = await process.run('w', asynchronous)
      process.worker({ stepMillis: 100 })
      await process.settled(id, 'completed')
      expect(aborted).toMatchObject([{ code: 'TARGET_TIMEOUT' }])
      const steps = await process.storage.runs.steps(id)
      expect(steps.map(({ number, attempt, outcome }) => [number, attempt, outcome])).toEqual([
        [1, 1, 'failed'],
        [1, 2, 'next'],
      ])
    })

    test('many runs and two workers: each run once, those of one subject in order', async () => {
      const url = await freshUrl()
      const seen: string[] = []
      let together = 0
      let most = 0
      const tasks = {
        note: async ({ user, request: map }: TaskContext) => {
          most = Math.max(most, ++together)
          await delay(Math.random() * 5)
          seen.push(`${user.userID} ${String(map.get('n'))}`)
          together--
          return next
        },
      }
      const options = { workflows: { w: [{ taskType: 'note' }] }, tasks }
      const [one, two] = [await openDurable(url, options), await openDurable(url, options)]
      const ids: string[] = []
      for (let n = 0; n < 30; n++) {
        const { id } = await one.run('w', { ...asynchronous, userID: `user${n % 3}`, params: { n: String(n) } })
        ids.push(id)
      }
      one.worker()
      two.worker()
      for (const id of ids) await one.settled(id, 'completed')
      for (const user of ['user0', 'user1', 'user2']) {
        const mine = seen.filter((line) => line.startsWith(`${user} `)).map((line) => Number(line.split(' ')[1]))
        expect(mine).toEqual([...mine].sort((a, b) => a - b))
        expect(mine.length).toBe(10)
      }
      expect(most).toBeGreaterThan(1)
    })

    test('a worker that is closed gives its run back after the current step', async () => {
      const url = await freshUrl()
      const gate = Promise.withResolvers<void>()
      const ran: string[] = []
      const tasks = {
        first: async ({ forTarget }: TaskContext) => {
          forTarget('store')
          ran.push('first')
          await gate.promise
          return next
        },
        second: async () => {
          ran.push('second')
          return next
        },
      }
      const options = { workflows: { w: [{ taskType: 'first' }, { taskType: 'second' }] }, tasks }
      const process = await openDurable(url, options)
      const { id } = await process.run('w', asynchronous)
      const worker = process.worker()
      await expect.poll(() => ran).toEqual(['first'])
      const closing = worker.close()
      gate.resolve()
      await closing
      expect(await process.storage.runs.get(id)).toMatchObject({ state: 'ready', attempt: 0 })
      process.worker()
      await process.settled(id, 'completed')
      expect(ran).toEqual(['first', 'second'])
    })
  })

  describe('an error', () => {
    test('that is temporary is retried, as the same step', async () => {
      const store = new MemoryTarget()
      let failures = 2
      store.before = ({ method }) => {
        if (method === 'createUser' && failures-- > 0) throw new GatewayError('TARGET_UNREACHABLE', 'down')
      }
      const process = await openDurable(await freshUrl(), {
        workflows: { w: [addMail, provision()] },
        targets: { store },
      })
      const { id } = await process.run('w', asynchronous)
      process.worker()
      await process.settled(id, 'completed')
      const steps = await process.storage.runs.steps(id)
      expect(steps.map(({ number, attempt, outcome, error }) => [number, attempt, outcome, error])).toEqual([
        [1, 1, 'next', undefined],
        [2, 1, 'failed', 'down'],
        [2, 2, 'failed', 'down'],
        [2, 3, 'next', undefined],
      ])
    })

    test('that persists is an incident, which blocks no other run, and can be retried', async () => {
      const store = new MemoryTarget()
      let down = true
      store.before = ({ userID }) => {
        if (down && userID === 'jjackson') throw new GatewayError('TARGET_UNREACHABLE', 'no route')
      }
      const process = await openDurable(await freshUrl(), { workflows: { w: [provision()] }, targets: { store } })
      const { id } = await process.run('w', asynchronous)
      process.worker()
      const run = await process.settled(id, 'incident')
      const incident = { task: 'w:0', code: 'TARGET_UNREACHABLE', message: 'no route', target: 'store', maySkip: true }
      expect(run.incident).toEqual(incident)
      expect((await process.storage.runs.steps(id)).length).toBe(4)
      const other = await process.run('w', { ...asynchronous, userID: 'other' })
      await process.settled(other.id, 'completed')
      down = false
      await expect(process.runs.retry({ id, fence: run.fence + 1, by: userRef('admin') })).rejects.toMatchObject({
        code: 'VERSION_MISMATCH',
      })
      await process.runs.retry({ id, fence: run.fence, by: userRef('admin'), reason: 'mended' })
      await process.settled(id, 'completed')
      const { rows } = await process.storage.audit.list({ requestor: 'admin', limit: 10 })
      expect(rows).toMatchObject([{ target: 'gatehouse', attribute: 'workflow', value: 'retry', reason: 'mended' }])
    })

    test('because a script changed the login of a bound run is an incident with the reason, is audited, and writes no user', async () => {
      const script = (code: string) => ({
        taskType: 'customTask',
        className: 'tasks.JavaScriptTask',
        params: { javaScript: `function doTask(user) { ${code}; return true }` },
      })
      const store = new MemoryTarget([{ userID: 'boss', attributes: {}, groups: [] }])
      const workflows = { w: [addMail, script('user.userID = "boss"; user.attributes.mail = ["evil"]'), provision()] }
      const process = await openDurable(await freshUrl(), { workflows, targets: { store } })
      const { id } = await process.run('w', { ...asynchronous, bound: { attributes: ['uid'] } })
      process.worker()
      const run = await process.settled(id, 'incident')
      expect(run.incident).toEqual({
        task: 'w:1',
        code: 'ACCESS_DENIED',
        message: expect.stringContaining('the task changed the login from "jjackson" to "boss"'),
        maySkip: true,
      })
      expect(run.touched).toBe(false)
      expect((await process.storage.runs.steps(id)).map(({ outcome }) => outcome)).toEqual(['next', 'failed'])
      await process.runs.retry({ id, fence: run.fence, by: userRef('admin') })
      const again = await process.settled(id, 'incident')
      expect(again.incident?.code).toBe('ACCESS_DENIED')
      expect(store.calls).toEqual([])
      const { rows } = await process.storage.audit.list({ workflowId: id, limit: 10 })
      const refusal = { action: 'refuse', kind: 'entry', attribute: 'subject', value: 'boss', target: 'gatehouse' }
      expect(rows.filter(({ action }) => action === 'refuse')).toEqual(
        Array(2).fill(expect.objectContaining({ ...refusal, subject: 'jjackson', reason: expect.any(String) })),
      )
      await process.runs.skip({ id, fence: again.fence, by: userRef('admin') })
      await process.settled(id, 'completed')
      expect(store.stored('boss')).toEqual({ attributes: {}, groups: [] })
      expect(store.stored('jjackson')?.attributes).toEqual({ mail: ['a@example.com'] })
    })

    test('that is permanent is an incident at once, and can be skipped', async () => {
      const store = new MemoryTarget()
      store.before = ({ method }) => {
        if (method === 'createUser') throw new GatewayError('CONFLICT', 'taken')
      }
      const [provisioned, other] = [provision(), provision({ target: 'other' })]
      const targets = { store, other: new MemoryTarget() }
      const process = await openDurable(await freshUrl(), { workflows: { w: [provisioned, other] }, targets })
      const { id } = await process.run('w', asynchronous)
      process.worker()
      const run = await process.settled(id, 'incident')
      expect(run.incident?.code).toBe('CONFLICT')
      expect((await process.storage.runs.steps(id)).length).toBe(1)
      await process.runs.skip({ id, fence: run.fence, by: userRef('admin'), reason: 'done by hand' })
      await process.settled(id, 'completed')
      expect(targets.other.stored('jjackson')).toBeDefined()
      expect(targets.other.calls[0]?.request.idempotencyKey).toBe(`${id}/2`)
      await expect(process.runs.skip({ id, fence: run.fence, by: userRef('admin') })).rejects.toMatchObject({
        code: 'CONFLICT',
      })
    })

    test.each([
      ['first', [provision(), provision({ target: 'other' })], false],
      ['second', [provision({ target: 'other' }), provision()], true],
    ] as const)(
      'at the %s of two targets is an unfinished change only if one was changed',
      async (_, tasks, touched) => {
        const store = new MemoryTarget()
        store.before = ({ method }) => {
          if (method === 'createUser') throw new GatewayError('BAD_REQUEST', 'no place')
        }
        const targets = { store, other: new MemoryTarget() }
        const process = await openDurable(await freshUrl(), { workflows: { w: [...tasks] }, targets })
        const { id } = await process.run('w', asynchronous)
        process.worker()
        expect(await process.settled(id)).toMatchObject({ state: 'incident', touched, incident: { target: 'store' } })
        const { runs } = await process.storage.runs.list({ unfinished: true, limit: 5 })
        expect(runs.map((run) => run.head.id)).toEqual(touched ? [id] : [])
      },
    )

    test('after the target made the change, with a lost response: the change is in the audit once', async () => {
      const store = new MemoryTarget([], false)
      const create = store.createUser.bind(store)
      let lost = true
      store.createUser = async (...args) => {
        await create(...args)
        if (lost) {
          lost = false
          throw new GatewayError('TARGET_TIMEOUT', 'no answer')
        }
      }
      const process = await openDurable(await freshUrl(), {
        workflows: { w: [addMail, provision()] },
        targets: { store },
      })
      const { id } = await process.run('w', { ...asynchronous, basedOn: { target: 'store', version: '' } })
      process.worker()
      const run = await process.settled(id, 'completed')
      expect(run.data).not.toHaveProperty('plannedChanges')
      const { rows } = await process.storage.audit.list({ workflowId: id, limit: 10 })
      expect(rows.map(({ attribute, value }) => [attribute, value])).toEqual([
        ['mail', 'a@example.com'],
        ['userID', 'jjackson'],
      ])
    })

    test('by which the target reports no change: nothing is in the audit, even if another made it', async () => {
      const store = new MemoryTarget()
      let failures = 1
      store.before = ({ method }) => {
        if (method === 'createUser' && failures-- > 0) throw new GatewayError('CONFLICT', 'taken')
      }
      const process = await openDurable(await freshUrl(), { workflows: { w: [provision()] }, targets: { store } })
      const { id } = await process.run('w', asynchronous)
      process.worker()
      const run = await process.settled(id, 'incident')
      store.put({ userID: 'jjackson' })
      await process.runs.retry({ id, fence: run.fence, by: userRef('admin') })
      await process.settled(id, 'completed')
      const { rows } = await process.storage.audit.list({ workflowId: id, limit: 10 })
      expect(rows.map(({ attribute }) => attribute)).toEqual(['workflow'])
    })

    test('after a change: the change is in the audit, and the next attempt is not bound to earlier versions', async () => {
      const store = new MemoryTarget([{ userID: 'jjackson', attributes: { mail: ['old'] } }])
      let failures = 1
      const tasks = {
        fails: async () => {
          if (failures-- > 0) throw new GatewayError('TARGET_UNREACHABLE', 'later')
          return next
        },
        both: async (context: TaskContext) => {
          const target = context.forTarget('store')
          target.audit({ subject: 'attribute', action: 'replace', attribute: 'mail', value: 'new' })
          return tasks.fails()
        },
      }
      const process = await openDurable(await freshUrl(), {
        workflows: { w: [{ taskType: 'both' }] },
        targets: { store },
        tasks,
      })
      const { id } = await process.run('w', { ...asynchronous, basedOn: { target: 'store', version: '1' } })
      process.worker()
      const run = await process.settled(id, 'completed')
      expect(run.data['versions']).toEqual([[]])
      const { rows } = await process.storage.audit.list({ workflowId: id, limit: 10 })
      expect(rows.length).toBe(2)
    })
  })

  describe('waiting', () => {
    const workflows = {
      w: [
        provision(),
        {
          taskType: 'approval',
          onSuccess: [{ taskType: 'addGroup', name: 'approved' }, provision()],
          onFailure: [{ taskType: 'addGroup', name: 'denied' }, provision()],
        },
      ],
    }

    test('a called run that meets an approval is stored in its state, and continues with the decision', async () => {
      const url = await freshUrl()
      const store = new MemoryTarget()
      const options = { workflows, targets: { store }, tasks: { approval }, approvals }
      const process = await openDurable(url, options)
      const result = await process.run('w', { password: 'hunter2', head: { reason: 'please' } })
      expect(result).toMatchObject({ status: 'waiting', changes: 1 })
      const { id } = result
      expect(await process.storage.runs.get(id)).toMatchObject({
        head: { reason: 'please' },
        state: 'waiting',
        touched: true,
      })
      expect((await process.storage.runs.steps(id)).map(({ outcome }) => outcome)).toEqual(['next', 'wait'])
      expect((await process.storage.audit.list({ workflowId: id, limit: 10 })).rows.length).toBe(1)
      expect(await everything(url)).not.toContain('hunter2')
      process.worker()
      const [open] = await process.storage.approvals.listOfRun(id)
      if (open === undefined) throw new Error('no approval')
      const signal = { kind: 'approval', approval: open.id, approved: true, by: 'boss' }
      const vote = {
        approval: open.id,
        version: open.version,
        outcome: 'approved',
        by: userRef('boss'),
        signal,
        audit: [],
      } as const
      const votes = await Promise.allSettled([
        process.storage.approvals.decide(vote),
        process.storage.approvals.decide(vote),
      ])
      expect(votes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
      await process.settled(id, 'completed')
      expect(store.stored('jjackson')?.groups).toEqual(['approved'])
      const { rows } = await process.storage.audit.list({ workflowId: id, limit: 10 })
      expect(rows.map(({ attribute, approval: by }) => [attribute, by])).toEqual([
        ['groups', open.id],
        ['userID', undefined],
      ])
      const steps = await process.storage.runs.steps(id)
      expect(steps.map(({ number, task }) => `${number} ${task}`)).toEqual([
        '1 w:0',
        '2 w:1',
        '2 w:1',
        '3 w:1/onSuccess/0',
        '4 w:1/onSuccess/1',
      ])
    })

    test('a denial is the outcome of the run, and is not lost when the step after it is retried', async () => {
      let failures = 1
      const flaky = (context: TaskContext): TaskOutcome => {
        if (context.signal !== undefined && failures-- > 0) throw new GatewayError('TARGET_TIMEOUT', 'slow')
        return approval(context)
      }
      const store = new MemoryTarget()
      const options = { workflows, targets: { store }, tasks: { approval: flaky }, approvals }
      const process = await openDurable(await freshUrl(), options)
      const { id } = await process.run('w')
      const [open] = await process.storage.approvals.listOfRun(id)
      const approvalId = open?.id ?? ''
      await process.storage.approvals.decide({
        approval: approvalId,
        version: open?.version ?? 0,
        outcome: 'denied',
        signal: { kind: 'approval', approval: approvalId, approved: false },
        audit: [],
      })
      process.worker()
      await process.settled(id, 'denied')
      expect(store.stored('jjackson')?.groups).toEqual(['denied'])
    })

    test('an approval that no one may decide is an incident', async () => {
      const nobody = {
        open: async () => {
          throw new GatewayError('NO_APPROVERS', 'nobody passes the rules')
        },
      }
      const options = { workflows, targets: { store: new MemoryTarget() }, tasks: { approval }, approvals: nobody }
      const process = await openDurable(await freshUrl(), options)
      const { id, status } = await process.run('w')
      expect(status).toBe('waiting')
      process.worker()
      const run = await process.settled(id, 'incident')
      const incident = { task: 'w:1', code: 'NO_APPROVERS', message: 'nobody passes the rules', maySkip: false }
      expect(run.incident).toEqual(incident)
      const { fence } = run
      await expect(process.runs.skip({ id, fence, by: userRef('admin') })).rejects.toMatchObject({ code: 'CONFLICT' })
      await process.runs.retry({ id, fence, by: userRef('admin') })
      expect((await process.settled(id, 'incident')).incident).toEqual(incident)
    })

    test.each([
      ['a task whose branch has an approval', { taskType: 'broken', onSuccess: [{ taskType: 'approval' }] }],
      ['a call of a workflow with an approval', { taskType: 'callWorkflow', name: 'called' }],
    ])("an incident at %s can't be skipped", async (_, task) => {
      const broken = () => {
        throw new GatewayError('TARGET_FAILED', 'broken')
      }
      const called = [{ taskType: 'broken', onSuccess: [{ taskType: 'approval' }] }, provision()]
      const options = { workflows: { w: [task, provision()], called }, targets: { store: new MemoryTarget() } }
      const process = await openDurable(await freshUrl(), { ...options, tasks: { approval, broken }, approvals })
      const { id } = await process.run('w', asynchronous)
      process.worker()
      const { fence, incident } = await process.settled(id, 'incident')
      expect(incident?.maySkip).toBe(false)
      await expect(process.runs.skip({ id, fence, by: userRef('admin') })).rejects.toMatchObject({ code: 'CONFLICT' })
      expect(options.targets.store.calls).toEqual([])
    })

    const asks = { taskType: 'approval' }
    const condition = { taskType: 'ifAttrHasValue', name: 'kind', value: 'external', onSuccess: [asks] }
    type TaskSpec = Readonly<Record<string, unknown>>
    test.each<[string, TaskSpec[], boolean, TaskSpec[]?]>([
      ['a condition that leads to an approval', [condition], false],
      ['a condition after the branch it is in', [provision()], false, [condition]],
      ['a call of a workflow with such a condition', [{ taskType: 'callWorkflow', name: 'called' }], false],
      ['an approval with such a condition', [{ ...asks, onSuccess: [condition] }], false],
      ['approvals that are always asked', [{ ...asks, onSuccess: [asks], onFailure: [condition] }], true],
      ['no approval', [provision()], true],
    ])('a task before %s', async (_, rest, maySkip, later: TaskSpec[] = []) => {
      const broken = () => {
        throw new GatewayError('TARGET_FAILED', 'broken')
      }
      const branch = {
        taskType: 'ifNotUserExists',
        target: 'store',
        uidAttribute: 'uid',
        onSuccess: [{ taskType: 'broken' }, ...rest],
      }
      const w = later.length === 0 ? [{ taskType: 'broken' }, ...rest] : [branch, ...later]
      const options = { workflows: { w, called: [condition] }, targets: { store: new MemoryTarget() } }
      const process = await openDurable(await freshUrl(), { ...options, tasks: { approval, broken }, approvals })
      const { id } = await process.run('w', asynchronous)
      process.worker()
      const { fence, incident } = await process.settled(id, 'incident')
      expect(incident?.maySkip).toBe(maySkip)
      const skipped = await process.runs.skip({ id, fence, by: userRef('admin') }).then(
        () => true,
        ({ code }) => code !== 'CONFLICT',
      )
      expect(skipped).toBe(maySkip)
    })

    test('an operator who requested the run, submitted it or is its subject changes nothing', async () => {
      const options = { workflows, targets: { store: new MemoryTarget() }, tasks: { approval }, approvals }
      const process = await openDurable(await freshUrl(), options)
      const [requestor, caller, subject] = ['req', 'cal', 'sub'].map(userRef)
      const who = { requester: requestor?.identity, caller: caller?.identity, subject: subject?.identity }
      const { id } = await process.run('w', { head: { who, caller: 'cal' } })
      const { fence } = (await process.storage.runs.get(id)) ?? { fence: 0 }
      for (const by of [requestor, caller, subject]) {
        const intervention = { id, fence, by: { identity: userRef('x').identity, login: 'renamed', ...by } }
        for (const action of ['retry', 'skip', 'cancel'] as const) {
          await expect(process.runs[action](intervention)).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
        }
      }
      expect(await process.runs.cancel({ id, fence, by: userRef('admin') })).toBe('cancelled')
    })

    test('a task may wait until a time', async () => {
      const until = new Date(Date.now() + 300)
      const tasks = {
        pause: ({ signal }: TaskContext): TaskOutcome => (signal === undefined ? { kind: 'wait', until } : next),
      }
      const store = new MemoryTarget()
      const process = await openDurable(await freshUrl(), {
        workflows: { w: [{ taskType: 'pause' }, provision()] },
        targets: { store },
        tasks,
      })
      const { id, status } = await process.run('w')
      expect(status).toBe('waiting')
      process.worker()
      process.timers()
      const run = await process.settled(id, 'completed')
      expect(run.ended?.getTime()).toBeGreaterThanOrEqual(until.getTime())
      expect(store.stored('jjackson')).toBeDefined()
    })

    test('longer than the deadline ends the run as expired', async () => {
      const options = { workflows, targets: { store: new MemoryTarget() }, tasks: { approval }, approvals }
      const process = await openDurable(await freshUrl(), options)
      const { id } = await process.run('w', { head: { deadline: new Date(Date.now() + 200) } })
      process.timers()
      expect(await process.settled(id, 'expired')).not.toHaveProperty('cancel')
      expect((await process.storage.approvals.listOfRun(id))[0]?.state).toBe('cancelled')
      const late = await process.run('w', { ...asynchronous, head: { deadline: new Date(Date.now() - 1) } })
      process.worker()
      await process.settled(late.id, 'expired')
    })
  })

  test('the deadline of a workflow applies to each of its runs', async () => {
    const tasks = {
      approval,
      start: ({ effects, user }: TaskContext): TaskOutcome => {
        effects.start({ head: { workflow: 'w', requester: 'caller' }, params: {}, user, asynchronous: true })
        return next
      },
    }
    const workflows = { w: [{ taskType: 'approval' }], starter: [{ taskType: 'start' }] }
    const options = { workflows, tasks, approvals, deadlines: { w: { months: 0, millis: 1_000 } } }
    const process = await openDurable(await freshUrl(), options)
    await process.run('w')
    await process.run('w', { ...asynchronous, userID: 'second' })
    await process.run('starter', { userID: 'third' })
    process.worker()
    process.timers()
    const ended = async () =>
      (await process.storage.runs.list({ name: 'w', states: ['expired'], limit: 9 })).runs.length
    await expect.poll(ended, { timeout: 10_000 }).toBe(3)
  })

  test('the requested expiry of a run is shown as long as the run is stored', async () => {
    const options = {
      workflows: { w: [provision()] },
      targets: { store: new MemoryTarget() },
      accessEnds: { w: { required: true } },
    }
    const process = await openDurable(await freshUrl(), options)
    const { id } = await process.run('w', { ...asynchronous, params: { accessEnds: '2099-01-31' } })
    const accessEnds = new Date('2099-01-31T23:59:59Z')
    expect(await process.runs.get(id)).toMatchObject({ state: 'ready', head: { accessEnds } })
    process.worker()
    await process.settled(id, 'completed')
    expect(await process.runs.get(id)).toMatchObject({ state: 'completed', head: { accessEnds } })
    expect((await process.runs.list({ limit: 5 })).runs).toMatchObject([{ head: { id, accessEnds } }])
  })

  describe('definitions', () => {
    const tasks = {
      pause: ({ signal }: TaskContext): TaskOutcome =>
        signal === undefined ? { kind: 'wait', approval: request } : next,
    }
    const group = (name: string) => ({ taskType: 'addGroup', name })

    test('a run continues with its original definition under any configuration, and so do the workflows it calls', async () => {
      const store = new MemoryTarget()
      const workflows = {
        w: [{ taskType: 'pause' }, group('old'), { taskType: 'callWorkflow', name: 'called' }, provision()],
        called: [group('old-called')],
      }
      const process = await openDurable(await freshUrl(), { workflows, targets: { store }, tasks, approvals })
      const { id } = await process.run('w')
      await process.reload({
        workflows: { w: [group('new'), provision()], called: [group('new-called')] },
        targets: { store },
        tasks,
        approvals,
      })
      process.worker()
      await process.storage.runs.signal(id, { kind: 'time' }, {})
      await process.settled(id, 'completed')
      expect(store.stored('jjackson')?.groups).toEqual(['old', 'old-called'])
    })

    test('one that is no longer available is an incident with the reason', async () => {
      const gone = { gone: () => next }
      const workflows = { w: [{ taskType: 'pause' }, { taskType: 'gone' }] }
      const process = await openDurable(await freshUrl(), { workflows, tasks: { ...tasks, ...gone }, approvals })
      const { id } = await process.run('w')
      await process.reload({ workflows: {}, tasks, approvals })
      await process.storage.runs.signal(id, { kind: 'time' }, {})
      process.worker()
      const run = await process.settled(id, 'incident')
      expect(run.incident?.message).toContain('no task type "gone"')
    })
  })

  describe('cancelling', () => {
    test('ends a run before its next step, with the effects of its last step', async () => {
      const store = new MemoryTarget()
      const gate = Promise.withResolvers<void>()
      const begun = Promise.withResolvers<void>()
      store.before = async ({ method }) => {
        if (method !== 'createUser') return
        begun.resolve()
        await gate.promise
      }
      const workflows = { w: [provision(), { taskType: 'delete', target: 'store' }] }
      const process = await openDurable(await freshUrl(), { workflows, targets: { store } })
      const { id } = await process.run('w', asynchronous)
      process.worker({ leaseMillis: 1_200 })
      await begun.promise
      const run = await process.settled(id, 'running')
      const intervention = { id, fence: run.fence, by: userRef('admin'), reason: 'wrong user' }
      await expect(process.runs.withdraw({ ...intervention, by: 'admin' })).rejects.toMatchObject({
        code: 'CONFLICT',
      })
      expect(await process.runs.cancel(intervention)).toBe('running')
      await delay(600)
      gate.resolve()
      expect(await process.settled(id, 'cancelled')).toMatchObject({ cancel: { by: 'admin', reason: 'wrong user' } })
      expect(store.stored('jjackson')).toBeDefined()
      const { rows } = await process.storage.audit.list({ workflowId: id, limit: 10 })
      expect(rows.map(({ attribute }) => attribute).sort()).toEqual(['userID', 'workflow'])
    })

    test('a worker that finds such a run executes nothing', async () => {
      const store = new MemoryTarget()
      const process = await openDurable(await freshUrl(), { workflows: { w: [provision()] }, targets: { store } })
      const { id } = await process.run('w', asynchronous)
      const [claimed] = await process.storage.runs.claim('dead', 1, 100)
      await process.runs.cancel({ id, fence: claimed?.fence ?? 0, by: userRef('admin') })
      process.worker()
      await process.settled(id, 'cancelled')
      expect(store.calls).toEqual([])
    })
  })

  test('effects of a step are committed with it: mails, access that expires, other runs', async () => {
    const url = await freshUrl()
    const expires = new Date(Date.now() + 3_600_000)
    let failures = 1
    const tasks = {
      wishes: ({ effects, user }: TaskContext): TaskOutcome => {
        effects.mail({ recipient: 'a@example.com', subject: 's', text: 't' })
        effects.grant({ target: 'store', subject: user.userID, kind: 'group', name: 'g', expires: { at: expires } })
        effects.start({ head: { workflow: 'other', requester: 'w' }, params: {}, user })
        if (failures-- > 0) throw new GatewayError('TARGET_UNREACHABLE', 'at the end')
        return next
      },
    }
    const store = new MemoryTarget()
    const workflows = { w: [{ taskType: 'wishes' }], other: [provision()] }
    const process = await openDurable(url, { workflows, targets: { store }, tasks })
    await expect(process.run('w')).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
    expect(await process.storage.mails.figures()).toMatchObject({ queued: 0 })
    await process.run('w')
    expect(await process.storage.mails.figures()).toMatchObject({ queued: 1 })
    failures = 1
    const { id } = await process.run('w', { ...asynchronous, userID: 'second' })
    process.worker()
    await process.settled(id, 'completed')
    expect(await process.storage.mails.figures()).toMatchObject({ queued: 2 })
    expect((await process.storage.grants.ofSubject('second')).length).toBe(1)
    for (const user of ['jjackson', 'second']) await expect.poll(() => store.stored(user)).toBeDefined()
  })

  test("another run that a step starts has the same caller, which the requestor can't hide", async () => {
    const tasks = {
      wishes: ({ effects, user, run }: TaskContext): TaskOutcome => {
        effects.start({ head: { workflow: 'other', requester: run.requester }, params: {}, user, asynchronous: true })
        return next
      },
    }
    const workflows = { w: [{ taskType: 'wishes' }], other: [addMail] }
    const process = await openDurable(await freshUrl(), { workflows, tasks })
    const call = { head: { requester: 'boss', caller: 'eve' } }
    await process.run('w', call)
    await process.run('w', { ...call, ...asynchronous, userID: 'second' })
    process.worker()
    const started = async () => (await process.storage.runs.list({ name: 'other', limit: 100 })).runs
    await expect.poll(async () => (await started()).filter(({ ended }) => ended !== undefined).length).toBe(2)
    expect(
      new Set((await started()).map(({ head: { requester: requestor, caller } }) => `${requestor} ${caller}`)),
    ).toEqual(new Set(['boss eve']))
  })

  test('an invalid effect of a step fails the run, and earlier changes are in the audit', async () => {
    const store = new MemoryTarget()
    const tasks = {
      wishes: ({ effects, user }: TaskContext): TaskOutcome => {
        effects.start({ head: { workflow: 'missing', requester: 'w' }, params: {}, user })
        return next
      },
      mails: ({ effects }: TaskContext): TaskOutcome => {
        effects.mail({ recipient: 'no address\r\nBcc: x@example.com', subject: 's', text: 't' })
        return next
      },
    }
    const workflows = { w: [provision(), { taskType: 'wishes' }], m: [{ taskType: 'mails' }] }
    const process = await openDurable(await freshUrl(), { workflows, targets: { store }, tasks })
    await expect(process.run('w')).rejects.toMatchObject({ code: 'NOT_SUPPORTED' })
    expect((await process.storage.audit.list({ limit: 10 })).rows.length).toBe(1)
    await expect(process.run('m')).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    const { id } = await process.run('w', { ...asynchronous, userID: 'second' })
    process.worker()
    expect(await process.settled(id)).toMatchObject({ state: 'incident', incident: { code: 'NOT_SUPPORTED' } })
    expect((await process.storage.audit.list({ workflowId: id, limit: 10 })).rows.length).toBe(1)
  })

  test('a database that is briefly unavailable loses nothing', async () => {
    const store = new MemoryTarget()
    const process = await openDurable(await freshUrl(), { workflows: { w: [provision()] }, targets: { store } })
    let failures = 2
    const flaky = new Proxy(process.storage.runs, {
      get(target, name: 'commit') {
        const method = (target[name] as (...args: unknown[]) => Promise<unknown>).bind(target)
        if (name !== 'commit') return method
        return async (...args: unknown[]) => {
          if (failures === 1) await method(...args)
          if (failures-- > 0) throw new GatewayError('TARGET_UNREACHABLE', 'connection lost')
          return await method(...args)
        }
      },
    })
    const { id } = await process.run('w', asynchronous)
    process.worker({}, { runs: flaky })
    await process.settled(id, 'completed')
    await delay(100)
    expect((await process.storage.audit.list({ workflowId: id, limit: 10 })).rows.length).toBe(1)
    expect((await process.storage.runs.steps(id)).length).toBe(1)
  })

  test("a clock that is set back changes nothing: the database's clock decides when runs are due, claimed and taken over", async () => {
    const url = await freshUrl()
    const store = new MemoryTarget()
    const options = { workflows: { w: [addMail, provision()] }, targets: { store } }
    let offset = 0
    const clock = (): Date => new Date(Date.now() + offset)
    const process = await openDurable(url, options, { changed: () => ({ clock }) })
    const { id } = await process.run('w', { ...asynchronous, head: { deadline: new Date(Date.now() + 60_000) } })
    offset = -24 * 3600_000
    // Another worker has claimed it, and died.
    await process.storage.runs.claim('dead', 1, 300)
    const behind = await process.run('w', asynchronous)
    process.worker({ leaseMillis: 300 })
    await process.settled(id, 'completed')
    await process.settled(behind.id, 'completed')
    expect(store.methods().filter((method) => method === 'createUser')).toHaveLength(1)
    const [first, second] = [await process.storage.runs.get(id), await process.storage.runs.get(behind.id)]
    expect(first?.ended?.getTime()).toBeLessThanOrEqual(second?.ended?.getTime() ?? 0)
    expect((await process.storage.audit.verify()).problems).toEqual([])
  })

  test('a single process continues the runs of the previous one at once', async () => {
    const url = await freshUrl()
    if (readAddress(url).dialect === 'postgres') return
    const store = new MemoryTarget()
    const process = await openDurable(url, { workflows: { w: [provision()] }, targets: { store } })
    const { id } = await process.run('w', asynchronous)
    await process.storage.runs.claim('dead', 1, 3_600_000)
    expect(await process.storage.runs.recover()).toBe(1)
    process.worker()
    await process.settled(id, 'completed')
  })
})
