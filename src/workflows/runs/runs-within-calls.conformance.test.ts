import { describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { TargetRequest } from '#sdk/target/target.ts'
import { onContext } from '#sdk/workflow/preview.ts'
import type { WorkflowCall } from '#sdk/workflow/workflow.ts'
import { next, type TaskContext, type TaskOutcome } from '#sdk/workflow/workflow-task.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { MemoryGroups } from '#testing/targets/memory-groups.ts'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import { type DurableProcess, dyingStore, openDurable } from '#testing/workflows/durable-fixture.ts'
import type { GivenCall } from '#testing/workflows/given-call.ts'
import { userRef } from '#testing/workflows/user-ref.ts'
import { customTask } from '#testing/workflows/workflow-fixture.ts'
import { UnfinishedRun } from '#workflows/record/run-requests.ts'

const provision = (extra = {}) => ({ taskType: 'provision', target: 'store', sync: true, ...extra })
const addMail = { taskType: 'addAttribute', name: 'mail', value: 'a@example.com' }
const never = new Promise<never>(() => {})

const callOf = (name: string, { head, ...more }: GivenCall = {}): WorkflowCall => ({
  head: { workflow: name, requester: 'caller', ...head },
  params: {},
  user: { userID: 'jjackson', attributes: new Attributes(), groups: [] },
  ...more,
})

/** A target that makes the change, or not, and then stops answering. */
class SilentTarget extends MemoryGroups {
  applies = true

  override async createUser(...args: Parameters<MemoryTarget['createUser']>): Promise<void> {
    if (this.applies) await super.createUser(...args)
    await never
  }

  override async createGroup(...args: Parameters<MemoryGroups['createGroup']>): Promise<void> {
    if (this.applies) await super.createGroup(...args)
    await never
  }

  override async setUserPassword(...args: Parameters<MemoryTarget['setUserPassword']>): Promise<void> {
    if (this.applies) await super.setUserPassword(...args)
    await never
  }
}

const auditOf = async ({ storage }: DurableProcess, workflowId: string): Promise<string[]> => {
  const { rows } = await storage.audit.list({ workflowId, limit: 100 })
  return rows.map(({ action, attribute, value }) => [action, attribute, value].join(' ')).sort()
}

onEachDatabase('runs within calls', (freshUrl) => {
  test('a refused call is in the audit, part by part and at a limited rate for each caller', async () => {
    const process = await openDurable(await freshUrl(), { workflows: {} })
    const refused = Array.from(
      { length: 20 },
      (_, i) => ({ kind: 'group', attribute: 'groups', value: `g${i}` }) as const,
    )
    const call = { name: 'w', caller: 'eve', subject: 'ann', requestId: 'r', refused }
    const { runs } = process
    for (let i = 0; i < 10; i++) await runs.refuse(call)
    await runs.refuse({ ...call, caller: 'mallory', refused: [{ kind: 'entry', attribute: 'subject', value: 'ann' }] })
    const { rows } = await process.storage.audit.list({ subject: 'ann', limit: 500 })
    const ofEve = rows.filter(({ requestor }) => requestor === 'eve')
    expect(ofEve.length).toBeGreaterThanOrEqual(50)
    expect(ofEve.length).toBeLessThan(100)
    expect(rows[0]).toMatchObject({
      requestor: 'mallory',
      subject: 'ann',
      workflow: { name: 'w' },
      target: 'gatehouse',
      kind: 'entry',
      action: 'refuse',
      attribute: 'subject',
      value: 'ann',
      requestId: 'r',
    })
  })

  describe('a run that ends within its call', () => {
    const workflows = { w: [addMail, provision()], fails: [addMail, provision(), { taskType: 'breaks' }] }
    const tasks = {
      breaks: () => {
        throw new GatewayError('CONFLICT', 'taken')
      },
    }

    test('can be read afterwards with its timeline if requested, and is not stored otherwise', async () => {
      const targets = { store: new MemoryTarget() }
      const process = await openDurable(await freshUrl(), { workflows, tasks, targets })
      const { id } = await process.run('w', { kept: true, head: { caller: 'api' } })
      expect(await process.storage.runs.get(id)).toMatchObject({
        state: 'completed',
        touched: true,
        head: { caller: 'api' },
        ended: expect.any(Date),
        data: { withinCall: true },
      })
      const steps = await process.storage.runs.steps(id)
      expect(steps.map(({ task, outcome }) => [task, outcome])).toEqual([
        ['w:0', 'next'],
        ['w:1', 'next'],
      ])
      expect(await auditOf(process, id)).toEqual(['add mail a@example.com', 'add userID jjackson'])
      const other = await process.run('w', { userID: 'eve' })
      expect(await process.storage.runs.get(other.id)).toBeUndefined()
      expect(await auditOf(process, other.id)).toHaveLength(2)
    })

    test('under a key returns that response, however soon it is repeated', async () => {
      const process = await openDurable(await freshUrl(), { workflows: { w: [addMail] } })
      const key = { scope: 's', key: 'k', bodyHash: 'b' }
      const starts = await Promise.all(
        Array.from({ length: 20 }, () => process.runs.start(callOf('w', { kept: true }), key)),
      )
      const [first, ...others] = starts.filter(({ kind }) => kind === 'started')
      expect(others).toEqual([])
      if (first === undefined || !('result' in first)) throw new Error('none was started')
      for (const start of starts) {
        expect(start.kind === 'under-way' ? start.run : 'result' in start && start.result.id).toBe(first.result.id)
        if ('result' in start) expect(start.result.status).toBe('completed')
      }
    })

    test('and changes nothing can be read too', async () => {
      const process = await openDurable(await freshUrl(), { workflows: { w: [addMail] } })
      const { id } = await process.run('w', { kept: true })
      expect(await process.storage.runs.get(id)).toMatchObject({ state: 'completed', touched: false })
      expect(await process.storage.runs.steps(id)).toHaveLength(1)
    })

    test('and fails can be read with its error', async () => {
      const targets = { store: new MemoryTarget() }
      const broken = { ...workflows, fails: [addMail, { taskType: 'breaks' }, provision()] }
      const process = await openDurable(await freshUrl(), { workflows: broken, tasks, targets })
      await expect(process.run('fails', { kept: true })).rejects.toMatchObject({ code: 'CONFLICT' })
      const { runs } = await process.storage.runs.list({ limit: 10 })
      const end = { state: 'failed', touched: false, incident: { task: 'fails:1', code: 'CONFLICT' } }
      expect(runs).toMatchObject([end])
    })

    test('and fails after a change is an unfinished change if it can be read; its changes are in the audit', async () => {
      const store = new MemoryTarget()
      let isBroken = true
      const breaksOnce = { breaks: () => (isBroken ? tasks.breaks() : next) }
      const process = await openDurable(await freshUrl(), { workflows, tasks: breaksOnce, targets: { store } })
      const error = await process.run('fails', { kept: true }).catch((thrown: unknown) => thrown)
      expect(error).toBeInstanceOf(UnfinishedRun)
      const { run: id } = error as UnfinishedRun
      const { runs } = await process.storage.runs.list({ unfinished: true, limit: 10 })
      const incident = { task: 'fails:2', code: 'CONFLICT', maySkip: true }
      expect(runs).toMatchObject([{ head: { id }, state: 'incident', touched: true, incident }])
      expect(await auditOf(process, id)).toHaveLength(2)
      await expect(process.run('fails', { userID: 'eve' })).rejects.toMatchObject({ code: 'CONFLICT' })
      expect((await process.storage.runs.list({ limit: 10 })).runs).toHaveLength(1)
      isBroken = false
      process.worker()
      await process.runs.retry({ id, fence: runs[0]?.fence ?? 0, by: userRef('admin') })
      await process.settled(id, 'completed')
      expect(await auditOf(process, id)).toHaveLength(3)
      expect(store.methods().filter((method) => method === 'createUser')).toHaveLength(2)
      const steps = await process.storage.runs.steps(id)
      expect(steps.map(({ task, outcome }) => [task, outcome])).toEqual([
        ['fails:0', 'next'],
        ['fails:1', 'next'],
        ['fails:2', 'failed'],
        ['fails:2', 'next'],
      ])
    })

    test('and fails after a change and its cancellation is not tried again, and says so', async () => {
      const cancels = async (): Promise<never> => {
        const [run] = (await process.storage.runs.list({ states: ['running'], limit: 1 })).runs
        if (run === undefined) throw new Error('nothing was planned')
        expect(await process.runs.cancel({ id: run.head.id, fence: run.fence, by: userRef('admin') })).toBe('running')
        throw new GatewayError('TARGET_UNREACHABLE', 'down')
      }
      const options = { workflows, tasks: { breaks: onContext(cancels) }, targets: { store: new MemoryTarget() } }
      const process = await openDurable(await freshUrl(), options)
      const error = await process.run('fails', { kept: true }).catch((thrown: unknown) => thrown)
      expect(error).not.toBeInstanceOf(UnfinishedRun)
      expect(error).toMatchObject({ code: 'CONFLICT', publicText: 'The run was cancelled.' })
      const { runs } = await process.storage.runs.list({ limit: 10 })
      expect(runs).toMatchObject([{ state: 'cancelled', touched: true }])
      const changes = ['add mail a@example.com', 'add userID jjackson']
      expect(await auditOf(process, runs[0]?.head.id ?? '')).toEqual(expect.arrayContaining(changes))
    })

    test.each([
      ['a value is refused', 'BAD_REQUEST', 'incident'],
      ['the target is down', 'TARGET_UNREACHABLE', 'ready'],
    ] as const)(
      'and fails between two calls of its only target, since %s, continues from there',
      async (_, code, state) => {
        const store = new MemoryTarget()
        let failures = 1
        store.before = ({ method }) => {
          if (method === 'setUserPassword' && failures-- > 0) throw new GatewayError(code, 'no password')
        }
        const once = { w: [addMail, provision({ setPassword: true })] }
        const process = await openDurable(await freshUrl(), { workflows: once, targets: { store } })
        const error = await process
          .run('w', { kept: true, password: 'correct horse' })
          .catch((thrown: unknown) => thrown)
        expect(error).toBeInstanceOf(UnfinishedRun)
        const { run: id } = error as UnfinishedRun
        expect(store.stored('jjackson')).toBeDefined()
        const run = await process.storage.runs.get(id)
        expect(run).toMatchObject({ state, touched: true })
        expect(JSON.stringify(run)).not.toContain('correct horse')
        process.worker()
        if (state === 'incident') await process.runs.retry({ id, fence: run?.fence ?? 0, by: userRef('admin') })
        await process.settled(id, 'completed')
        expect(store.passwords.get('jjackson')).toBe('correct horse')
        expect(store.methods().filter((method) => method === 'createUser')).toHaveLength(1)
      },
    )

    test('delays no stored run of its subject while it is executed, and no other process executes it', async () => {
      const url = await freshUrl()
      const gate = Promise.withResolvers<void>()
      const store = new MemoryTarget()
      store.before = ({ method }) => (method === 'createUser' ? gate.promise : undefined)
      const process = await openDurable(url, { workflows, tasks, targets: { store } })
      const running = process.run('w')
      await expect.poll(async () => (await process.storage.runs.figures()).running).toBe(1)
      const other = await openDurable(url, { workflows: { w: [addMail] } })
      const { id } = await other.run('w', { asynchronous: true })
      other.worker()
      await other.settled(id, 'completed')
      gate.resolve()
      expect(await running).toMatchObject({ status: 'completed', changes: 2 })
      expect((await process.storage.runs.figures()).running).toBe(0)
    })

    test('or has to wait after it changed a target continues from there', async () => {
      const store = new MemoryTarget()
      const until = new Date(Date.now() + 100)
      const waits = ({ signal }: TaskContext): TaskOutcome =>
        signal === undefined ? { kind: 'wait', until } : { kind: 'next' }
      const process = await openDurable(await freshUrl(), {
        workflows: {
          w: [addMail, provision(), { taskType: 'waits' }, { taskType: 'addGroup', name: 'g' }, provision()],
        },
        tasks: { waits },
        targets: { store },
      })
      process.worker()
      process.timers()
      const { id, status } = await process.run('w')
      expect(status).toBe('waiting')
      await process.settled(id, 'completed')
      expect(store.stored('jjackson')).toEqual({ attributes: { mail: ['a@example.com'] }, groups: ['g'] })
      expect(await auditOf(process, id)).toEqual(['add groups g', 'add mail a@example.com', 'add userID jjackson'])
      expect((await process.storage.runs.steps(id)).map(({ number }) => number)).toEqual([1, 2, 3, 3, 4, 5])
    })
  })

  describe('a process that dies within a call', () => {
    const workflows = {
      w: [addMail, provision(), { taskType: 'addGroup', name: 'late' }],
      password: [provision({ setPassword: true })],
      group: [customTask('tasks.CreateGroup', { target: 'store', name: 'crew', attributes: 'kind=made' })],
    }

    const ownKey = { scope: 's', key: 'k', bodyHash: 'b' }

    /** The run that the dying process began, and a process that lives. */
    async function died(workflow: string, store: MemoryTarget, more: GivenCall = {}) {
      const url = await freshUrl()
      const dying = await openDurable(
        url,
        { workflows, targets: { store } },
        { changed: ({ runs }) => ({ runs: dyingStore(runs), leaseMillis: 200 }) },
      )
      const call = callOf(workflow, more)
      void dying.runs.start(call, ownKey).catch(() => {})
      await expect.poll(async () => (await dying.storage.runs.figures()).running).toBe(1)
      const other = await openDurable(url, { workflows, targets: { store } })
      const [run] = (await other.storage.runs.list({ limit: 5 })).runs
      if (run === undefined) throw new Error('no run')
      expect(await other.runs.start(call, ownKey)).toEqual({ kind: 'under-way', run: run.head.id })
      return { id: run.head.id, other, begun: () => expect.poll(() => store.methods()).toContain('createUser') }
    }

    test('after the target made the change: it is in the audit, and the run does not continue', async () => {
      const store = new SilentTarget()
      const { id, other, begun } = await died('w', store)
      await begun()
      other.worker({ leaseMillis: 500 })
      expect(await other.settled(id, 'failed')).toMatchObject({ touched: true, incident: { code: 'CALL_LOST' } })
      expect(await auditOf(other, id)).toEqual(['add mail a@example.com', 'add userID jjackson'])
      expect(store.stored('jjackson')?.groups).toEqual([])
      expect((await other.storage.audit.verify()).problems).toEqual([])
    })

    test('before the target made the change: nothing is in the audit', async () => {
      const store = new SilentTarget()
      store.applies = false
      const { id, other } = await died('w', store)
      other.worker({ leaseMillis: 300 })
      await other.settled(id, 'failed')
      expect(await auditOf(other, id)).toEqual([])
      expect(store.stored('jjackson')).toBeUndefined()
    })

    test('while the target still works on it: the change is in the audit once it arrives', async () => {
      const store = new SilentTarget()
      store.applies = false
      const { id, other } = await died('w', store)
      other.worker({ leaseMillis: 1_000 })
      await other.settled(id, 'ready')
      store.put({ userID: 'jjackson', attributes: { mail: ['a@example.com'] } })
      await other.settled(id, 'failed')
      expect(await auditOf(other, id)).toEqual(['add mail a@example.com', 'add userID jjackson'])
    })

    test('while a password was set: the outcome is unknown, so it is an incident, which can be closed', async () => {
      const store = new SilentTarget([{ userID: 'jjackson' }])
      const { id, other } = await died('password', store, { password: 'hunter2' })
      other.worker()
      const incident = await other.settled(id, 'incident')
      expect(incident.incident?.message).toContain('store: replace attribute password')
      expect(JSON.stringify(incident)).not.toContain('hunter2')
      const { fence } = incident
      await expect(other.runs.skip({ id, fence, by: userRef('admin') })).rejects.toMatchObject({ code: 'CONFLICT' })
      await other.runs.retry({ id, fence, by: userRef('admin') })
      const again = await other.settled(id, 'incident')
      expect(await other.runs.cancel({ id, fence: again.fence, by: userRef('admin'), reason: 'looked' })).toBe(
        'cancelled',
      )
    })

    test.each([
      ['before the target made the change', 'createUser', false],
      ['after the target made the change', 'createUser', true],
      ['while a password was set', 'setUserPassword', false],
    ] as const)('%s: a run that can be read later is finished by another', async (_, silent, applies) => {
      const store = new MemoryTarget()
      let isFirst = true
      store.before = async ({ method, userID }) => {
        if (method !== silent || !isFirst) return
        isFirst = false
        if (applies) store.put({ userID })
        await never
      }
      const { id, other } = await died('password', store, { password: 'hunter2', kept: true })
      await expect.poll(() => isFirst).toBe(false)
      expect(JSON.stringify(await other.storage.runs.get(id))).not.toContain('hunter2')
      other.worker({ leaseMillis: 500 })
      await other.settled(id, 'completed')
      expect(store.passwords.get('jjackson')).toBe('hunter2')
      const created = (await auditOf(other, id)).filter((row) => row.startsWith('add'))
      expect(created).toEqual(['add userID jjackson'])
      expect(await other.runs.start(callOf('password', { password: 'hunter2', kept: true }), ownKey)).toEqual({
        kind: 'repeated',
        result: { id, status: 'accepted', changes: 0 },
      })
    })

    test('while a group was created: the group is found', async () => {
      const store = new SilentTarget()
      const { id, other } = await died('group', store)
      await expect.poll(() => store.groups.has('crew')).toBe(true)
      other.worker()
      await other.settled(id, 'failed')
      expect(await auditOf(other, id)).toEqual(['add kind made', 'add name crew'])
    })

    test("while the target can't be read afterwards: it is read again later", async () => {
      const store = new SilentTarget()
      const { id, other, begun } = await died('w', store)
      await begun()
      let refusals = 2
      store.before = () => {
        if (refusals-- > 0) throw new GatewayError('TARGET_UNREACHABLE', 'down')
      }
      other.worker()
      await other.settled(id, 'failed')
      expect(await auditOf(other, id)).toHaveLength(2)
    })
  })

  test.each([true, false])(
    "a call whose response is lost fails, or is finished if it can be read; the target's change is in the audit, kept: %s",
    async (kept) => {
      class CutTarget extends MemoryTarget {
        override async createUser(...args: Parameters<MemoryTarget['createUser']>): Promise<void> {
          const [user, attributes, request] = args
          await super.createUser(user, attributes, { ...request, audit: () => {} })
          throw new GatewayError('TARGET_UNREACHABLE', 'cut off')
        }
      }
      const store = new CutTarget()
      const process = await openDurable(await freshUrl(), {
        workflows: { w: [addMail, provision()] },
        targets: { store },
      })
      await expect(process.run('w', { kept })).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
      const [run] = (await process.storage.runs.list({ limit: 5 })).runs
      process.worker()
      const ended = await process.settled(run?.head.id ?? '', kept ? 'completed' : 'failed')
      if (!kept) expect(ended.incident).toMatchObject({ task: 'w:1', code: 'TARGET_UNREACHABLE', message: 'cut off' })
      expect((await auditOf(process, ended.head.id)).sort()).toEqual(['add mail a@example.com', 'add userID jjackson'])
      expect(await process.storage.runs.steps(ended.head.id)).toHaveLength(kept ? 3 : 2)
    },
  )

  test('a call that a target refuses leaves nothing to find out', async () => {
    const store = new MemoryTarget()
    store.before = ({ method }) => {
      if (method === 'createUser') throw new GatewayError('TARGET_FAILED', 'no')
    }
    const process = await openDurable(await freshUrl(), {
      workflows: { w: [addMail, provision()] },
      targets: { store },
    })
    await expect(process.run('w')).rejects.toMatchObject({ code: 'TARGET_FAILED' })
    expect((await process.storage.runs.list({ limit: 5 })).runs).toEqual([])
  })

  test('a process that counted as dead writes the rest, and nothing twice', async () => {
    const url = await freshUrl()
    const gate = Promise.withResolvers<void>()
    /** Creates the user, and responds late. */
    class LateTarget extends MemoryTarget {
      override async createUser(user: never, attributes: readonly string[], request: TargetRequest): Promise<void> {
        await super.createUser(user, attributes, request)
        await gate.promise
      }
    }
    const store = new LateTarget()
    const workflows = { w: [addMail, provision(), { taskType: 'addGroup', name: 'g' }] }
    const slow = await openDurable(
      url,
      { workflows, targets: { store } },
      { changed: ({ runs }) => ({ runs: dyingStore(runs), leaseMillis: 100 }) },
    )
    const running = slow.run('w')
    await expect.poll(() => store.methods()).toContain('createUser')
    const other = await openDurable(url, { workflows, targets: { store } })
    const [run] = (await other.storage.runs.list({ limit: 5 })).runs
    other.worker()
    await other.settled(run?.head.id ?? '', 'failed')
    gate.resolve()
    expect(await running).toMatchObject({ status: 'completed' })
    expect(await auditOf(other, run?.head.id ?? '')).toEqual(['add mail a@example.com', 'add userID jjackson'])
  })

  describe('runs that start one another', () => {
    test('end with an incident', async () => {
      const again = customTask('tasks.AsyncCallWorkflow', { workflowName: 'w', uidAttributeName: 'uid' })
      const process = await openDurable(await freshUrl(), { workflows: { w: [again] } })
      process.worker()
      await process.run('w', { attributes: { uid: ['jjackson'] }, asynchronous: true })
      const stuck = async () => (await process.storage.runs.figures()).incident
      await expect.poll(stuck, { timeout: 20_000 }).toBe(1)
      const { runs } = await process.storage.runs.list({ limit: 50 })
      expect(runs).toHaveLength(17)
      expect(runs[0]).toMatchObject({ state: 'incident', incident: { code: 'WORKFLOW_FAILED' } })
      expect(runs[0]?.incident?.message).toContain('16 runs started one another')
      expect(runs.slice(1).every(({ state }) => state === 'completed')).toBe(true)
    })
  })
})
