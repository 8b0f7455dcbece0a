import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { databaseTarget } from '#adapters/targets/database/database.ts'
import { Passwords } from '#adapters/targets/database/password-hash.ts'
import { readAddress } from '#database/databases.ts'
import { Attributes } from '#identity/attributes.ts'
import type { EntryDirectory } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import { entryIdentity } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import { type Texts, textsIn } from '#sdk/page/page-texts.ts'
import type { ApprovalRequest } from '#sdk/workflow/approval-request.ts'
import { onContext } from '#sdk/workflow/preview.ts'
import type { RunHead } from '#sdk/workflow/run-head.ts'
import { next, type TaskOutcome } from '#sdk/workflow/workflow-task.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { createUser, deleteUser } from '#testing/databases/directory-writes.ts'
import { runSql } from '#testing/databases/postgres.ts'
import { quietRequest } from '#testing/ldap/ldap-target.ts'
import { leastCost } from '#testing/login/least-cost.ts'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import { type DurableProcess, dyingStore, openDurable as openWith } from '#testing/workflows/durable-fixture.ts'
import { userRef } from '#testing/workflows/user-ref.ts'
import type { TaskSpec } from '#testing/workflows/workflow-fixture.ts'
import { subjectQueue } from '#workflows/steps/workflow-services.ts'

const provision = (extra = {}) => ({ taskType: 'provision', target: 'store', sync: true, setPassword: true, ...extra })
const refusal = { recipient: 'evil@example.com', subject: 'Your registration', text: 'There is an account already.' }
const registration = {
  asynchronous: true,
  userID: 'newhire',
  password: 'attackers-own',
  attributes: { mail: ['evil@example.com'] },
  keepGroups: true,
  newAccount: { unique: [{ attribute: 'mail', value: 'evil@example.com' }], refusal },
}
const real = { userID: 'NewHire', attributes: { mail: ['real@example.com'] }, groups: ['staff'] }
const kept = { attributes: real.attributes, groups: real.groups }

const nobody: EntryDirectory = { search: async () => [], isMember: async () => false }
const asked: ApprovalRequest = { label: 'Join', approvers: [], allowSelf: false, escalations: [] }
const tasks = {
  ask: onContext(
    ({ signal }): TaskOutcome =>
      signal?.kind !== 'approval'
        ? { kind: 'wait', approval: asked }
        : { kind: 'branch', branch: signal.approved ? 'onSuccess' : 'onFailure' },
  ),
}
const approvals = {
  open: async (_: ApprovalRequest, { head, step }: { readonly head: RunHead; readonly step: number }) => ({
    ...{
      id: `approval-${head.id}-${step}`,
      step,
      label: 'Join',
      approvers: [userRef('boss')],
      allowSelf: false,
      rules: [],
      data: {},
    },
    ...{ timers: [], mails: [] },
  }),
  mailsToDeciders: async (run: string, write: (texts: Texts) => string) => [
    { id: `refusal-${run}`, recipient: 'boss@example.com', subject: 'Not done', text: write(textsIn('en')) },
  ],
}

type Options = Parameters<typeof openWith>[1]
const openDurable = (url: string, options: Options): Promise<DurableProcess> =>
  openWith(url, { directory: nobody, ...options })

const askFirst = (...onSuccess: TaskSpec[]) => [{ taskType: 'ask', onSuccess }]

async function approve({ storage }: DurableProcess, run: string): Promise<void> {
  const [approval] = await storage.approvals.listOfRun(run)
  if (approval === undefined) throw new Error('there is no approval')
  const { id, version } = approval
  const signal = { kind: 'approval', approval: id, approved: true, by: 'boss' }
  await storage.approvals.decide({ approval: id, version, outcome: 'approved', by: userRef('boss'), signal, audit: [] })
}

async function secretOf(url: string, run: string): Promise<unknown> {
  const { dialect, address } = readAddress(url)
  const query = `select secret from runs where id = '${run}'`
  if (dialect === 'postgres') return ((await runSql(url, query)) as { secret: unknown }[])[0]?.secret
  const database = new DatabaseSync(address)
  try {
    return database.prepare(query).get()?.['secret']
  } finally {
    database.close()
  }
}

const incident = { code: 'ACCOUNT_EXISTS', message: expect.stringContaining('the registration created no account') }

onEachDatabase('runs that may only create accounts', (freshUrl) => {
  test('an account that appears while the run waits stays as it is; the run fails with the reason and keeps no secret', async () => {
    const url = await freshUrl()
    const store = new MemoryTarget()
    const options = { tasks, approvals, targets: { store }, workflows: { w: askFirst(provision()) } }
    const process = await openDurable(url, options)
    const { id } = await process.run('w', registration)
    process.worker()
    await process.settled(id, 'waiting')
    expect(await secretOf(url, id)).toEqual(expect.any(String))
    store.put(real)
    await approve(process, id)
    expect(await process.settled(id)).toMatchObject({ state: 'failed', incident, touched: false })
    expect(store.stored('newhire')).toEqual(kept)
    expect(store.passwords.size).toBe(0)
    expect(await secretOf(url, id)).toBeNull()
    const { rows } = await process.storage.audit.list({ workflowId: id, limit: 10 })
    expect(rows).toMatchObject([{ attribute: 'registration', action: 'delete', value: 'ACCOUNT_EXISTS' }])
    const mails = await process.storage.mails.list({ state: 'queued', limit: 10 })
    expect(mails.mails.map(({ recipient }) => recipient).sort()).toEqual(['boss@example.com', 'evil@example.com'])
  })

  test('an account with the same values does not count as created by the run', async () => {
    const store = new MemoryTarget()
    const process = await openDurable(await freshUrl(), { workflows: { w: [provision()] }, targets: { store } })
    const { id } = await process.run('w', registration)
    store.before = ({ method }) => {
      // After the preview, just before the write.
      if (method === 'createUser') store.put({ userID: 'newhire', attributes: { mail: ['evil@example.com'] } })
    }
    process.worker()
    expect(await process.settled(id)).toMatchObject({ state: 'failed', incident })
    expect(store.passwords.size).toBe(0)
  })

  test('another user got a value that must be unique', async () => {
    const store = new MemoryTarget()
    const people = [
      {
        dn: Dn.parse('uid=x,o=x'),
        identity: entryIdentity('x', 'x'),
        attributes: Attributes.from({ mail: ['EVIL@example.com'] }),
      },
    ]
    const directory = { ...nobody, search: async () => people }
    const options = { workflows: { w: [provision()] }, targets: { store }, directory }
    const process = await openDurable(await freshUrl(), options)
    const { id } = await process.run('w', registration)
    process.worker()
    const message = 'An account with this mail exists already; the registration created no account.'
    expect(await process.settled(id)).toMatchObject({ state: 'failed', incident: { code: 'ACCOUNT_EXISTS', message } })
    expect(store.stored('newhire')).toBeUndefined()
  })

  test('if one of several targets has the account, none is written', async () => {
    const [store, second] = [new MemoryTarget(), new MemoryTarget([real])]
    const workflows = { w: [provision(), provision({ target: 'second', setPassword: false })] }
    const process = await openDurable(await freshUrl(), { workflows, targets: { store, second } })
    const { id } = await process.run('w', registration)
    process.worker()
    expect(await process.settled(id)).toMatchObject({ state: 'failed', incident })
    expect(store.stored('newhire')).toBeUndefined()
    expect(second.stored('newhire')).toEqual(kept)
  })

  test('an account that appears at the second target between the writes stays; the reason says what was created', async () => {
    const [store, second] = [new MemoryTarget(), new MemoryTarget()]
    store.before = ({ method }) => {
      if (method === 'setUserPassword') second.put(real)
    }
    const workflows = { w: [provision(), provision({ target: 'second', setPassword: false })] }
    const process = await openDurable(await freshUrl(), { workflows, targets: { store, second } })
    const { id } = await process.run('w', registration)
    process.worker()
    const message =
      'An account named "NewHire" exists already; the registration stopped after it created the account at "store".'
    const stuck = { state: 'incident', touched: true, incident: { code: 'ACCOUNT_EXISTS', message, target: 'second' } }
    const run = await process.settled(id, 'incident')
    expect(run).toMatchObject(stuck)
    expect(second.stored('newhire')).toEqual(kept)
    const { runs, mails } = process.storage
    expect((await runs.list({ unfinished: true, limit: 5 })).runs.map((one) => one.head.id)).toEqual([id])
    expect((await mails.list({ state: 'queued', limit: 5 })).mails).toEqual([])

    const retry = async ({ fence }: { readonly fence: number }) =>
      await process.runs.retry({ id, fence, by: userRef('operator') })
    await retry(run)
    const isStuckAgain = async () => {
      const { state, fence = 0 } = (await process.runs.get(id)) ?? {}
      return state === 'incident' && fence > run.fence + 1
    }
    await expect.poll(isStuckAgain).toBe(true)
    expect(second.stored('newhire')).toEqual(kept)
    await second.deleteUser({ userID: 'newhire', attributes: new Attributes(), groups: [] }, quietRequest)
    await retry((await process.runs.get(id)) ?? run)
    expect(await process.settled(id, 'completed')).toMatchObject({ state: 'completed' })
    expect(second.stored('newhire')?.attributes).toEqual(registration.attributes)
    expect(store.methods().filter((method) => method === 'createUser')).toHaveLength(1)
  })

  test('an account that appears after the run changed something else is an incident', async () => {
    const store = new MemoryTarget()
    store.before = ({ method }) => {
      if (method === 'createUser') store.put(real)
    }
    const change = onContext(({ forTarget }): TaskOutcome => {
      forTarget('other').audit({ subject: 'attribute', action: 'add', attribute: 'seats', value: '1' })
      return next
    })
    const options = { tasks: { change }, workflows: { w: [{ taskType: 'change' }, provision()] }, targets: { store } }
    const process = await openDurable(await freshUrl(), options)
    const { id } = await process.run('w', registration)
    process.worker()
    const message = 'An account named "newhire" exists already; the registration created no account.'
    const end = { state: 'incident', touched: true, incident: { code: 'ACCOUNT_EXISTS', message } }
    expect(await process.settled(id)).toMatchObject(end)
    expect(store.stored('newhire')).toEqual(kept)
  })

  test.each([
    ['deletes', { taskType: 'delete', target: 'store' }],
    ['takes from a group', revoke('group', 'staff')],
    ['revokes', revoke('user', 'newhire')],
  ])('a task that %s changes no account of another user', async (_, task) => {
    const store = new MemoryTarget([real])
    const process = await openDurable(await freshUrl(), { workflows: { w: [task] }, targets: { store } })
    const { id } = await process.run('w', registration)
    process.worker()
    expect(await process.settled(id)).toMatchObject({ state: 'failed', incident })
    expect(store.stored('newhire')).toEqual(kept)
  })

  test('the run changes the accounts that it created, and adds groups to them, even after another wait and a restart', async () => {
    const url = await freshUrl()
    const store = new MemoryTarget()
    const workflows = {
      w: [provision(), ...askFirst({ taskType: 'addGroup', name: 'g' }, provision({ setPassword: false }))],
    }
    const options = { tasks, approvals, targets: { store }, workflows }
    const first = await openDurable(url, options)
    const { id } = await first.run('w', registration)
    await (async () => {
      const worker = first.worker()
      await first.settled(id, 'waiting')
      await worker.close()
    })()
    const process = await openDurable(url, options)
    process.worker()
    await approve(process, id)
    expect(await process.settled(id)).toMatchObject({ state: 'completed' })
    expect(store.stored('newhire')).toEqual({ attributes: { mail: ['evil@example.com'] }, groups: ['g'] })
    expect(store.passwords.get('newhire')).toBe('attackers-own')
  })

  test('a run that it starts is bound as well', async () => {
    const store = new MemoryTarget()
    const second = new MemoryTarget([real])
    const start = {
      taskType: 'customTask',
      className: 'tasks.AsyncCallWorkflow',
      params: { workflowName: 'other', uidAttributeName: 'TREMOLO_USER_ID' },
    }
    const workflows = {
      w: [provision({ setPassword: false }), start],
      other: [
        { taskType: 'addGroup', name: 'g' },
        provision({ setPassword: false }),
        provision({ target: 'second', setPassword: false }),
      ],
    }
    const process = await openDurable(await freshUrl(), { workflows, targets: { store, second } })
    const { id } = await process.run('w', registration)
    process.worker()
    await process.settled(id, 'completed')
    const { runs } = await process.storage.runs.list({ name: 'other', limit: 1 })
    const started = await process.settled(runs[0]?.head.id ?? '')
    expect(started).toMatchObject({ state: 'incident', incident: { code: 'ACCOUNT_EXISTS' } })
    expect(store.stored('newhire')?.groups).toEqual(['g'])
    expect(second.stored('newhire')).toEqual(kept)
  })

  test('of two waiting registrations of one login, the first to be approved wins', async () => {
    const store = new MemoryTarget()
    const options = { tasks, approvals, targets: { store }, workflows: { w: askFirst(provision()) } }
    const process = await openDurable(await freshUrl(), options)
    process.worker()
    const [one, two] = [await process.run('w', registration), await process.run('w', registration)]
    for (const { id } of [one, two]) await process.settled(id, 'waiting')
    await approve(process, two.id)
    expect(await process.settled(two.id)).toMatchObject({ state: 'completed' })
    await approve(process, one.id)
    expect(await process.settled(one.id)).toMatchObject({ state: 'failed', incident })
  })

  test.each(['before-target', 'before-commit'] as const)(
    'a process that dies %s: the account that it created belongs to the run',
    async (point) => {
      const url = await freshUrl()
      const store = new MemoryTarget()
      const workflows = { w: [provision()] }
      const process = await openDurable(url, { workflows, targets: { store } })
      const { id } = await process.run('w', registration)
      const lease = { leaseMillis: 1_500, sweepMillis: 20 }
      const changed = { runs: dyingStore(process.storage.runs, point), subjects: subjectQueue() }
      process.worker({ ...lease, drainMillis: 1 }, changed)
      const intends = async () => (await process.storage.runs.get(id))?.data['plannedChanges'] !== undefined
      await expect.poll(intends, { timeout: 10_000 }).toBe(true)
      if (point === 'before-commit') {
        await expect.poll(() => store.passwords.size, { timeout: 10_000 }).toBe(1)
      }
      const other = await openDurable(url, { workflows, targets: { store } })
      other.worker(lease)
      expect(await other.settled(id)).toMatchObject({ state: 'completed' })
      expect(store.methods().filter((method) => method === 'createUser')).toHaveLength(1)
      expect(store.passwords.get('newhire')).toBe('attackers-own')
    },
  )

  test('a process that dies before it creates the account: an account that another created since then stays', async () => {
    const url = await freshUrl()
    const store = new MemoryTarget()
    const workflows = { w: [provision()] }
    const process = await openDurable(url, { workflows, targets: { store } })
    const { id } = await process.run('w', registration)
    const lease = { leaseMillis: 1_500, sweepMillis: 20 }
    const changed = { runs: dyingStore(process.storage.runs, 'before-target'), subjects: subjectQueue() }
    process.worker({ ...lease, drainMillis: 1 }, changed)
    const intends = async () => (await process.storage.runs.get(id))?.data['plannedChanges'] !== undefined
    await expect.poll(intends, { timeout: 10_000 }).toBe(true)
    store.put(real)
    const other = await openDurable(url, { workflows, targets: { store } })
    other.worker(lease)
    expect(await other.settled(id)).toMatchObject({ state: 'failed', incident })
    expect(store.stored('newhire')).toEqual(kept)
    expect(store.passwords.size).toBe(0)
  })

  /** A process whose target `store` is the embedded directory. */
  async function openOwn(url: string, workflows: Options['workflows']): Promise<DurableProcess> {
    const process = await openDurable(url, { workflows: {} })
    const { storage } = process
    const passwords = new Passwords(storage.userDirectory({ name: 'people/passwords' }), leastCost)
    const store = databaseTarget(storage.userDirectory({ name: 'people' }), passwords, { auditsWithin: true })
    await process.reload({ workflows, tasks, approvals, directory: nobody, targets: { store } })
    return process
  }

  test('a searchable target is checked for unique values too', async () => {
    const process = await openOwn(await freshUrl(), { w: [provision()] })
    const users = process.storage.userDirectory({ name: 'people' })
    await createUser(users, { userID: 'real', attributes: Attributes.from({ mail: ['Evil@example.com'] }), groups: [] })
    const { id } = await process.run('w', registration)
    process.worker()
    const message = 'An account with this mail exists already; the registration created no account.'
    expect(await process.settled(id)).toMatchObject({ state: 'failed', incident: { code: 'ACCOUNT_EXISTS', message } })
    expect(await users.lookupUserByLogin('newhire')).toBeUndefined()
  })

  test('an account that another created in place of the run’s own stays unchanged', async () => {
    const process = await openOwn(await freshUrl(), {
      w: [provision(), ...askFirst({ taskType: 'addGroup', name: 'g' }, provision())],
    })
    const users = process.storage.userDirectory({ name: 'people' })
    const { id } = await process.run('w', registration)
    process.worker()
    await process.settled(id, 'waiting')
    await deleteUser(users, 'newhire')
    await createUser(users, { userID: 'newhire', attributes: Attributes.from(real.attributes), groups: ['staff'] })
    const before = await users.lookupUserByLogin('newhire')
    await approve(process, id)
    expect(await process.settled(id)).toMatchObject({ state: 'incident', incident: { code: 'ACCOUNT_EXISTS' } })
    expect(await users.lookupUserByLogin('newhire')).toEqual(before)
  })

  test("in Gatehouse's own database, where the audit is one commit with the account, a lost process changes nothing", async () => {
    const url = await freshUrl()
    const workflows = { w: [provision()] }
    const open = (): Promise<DurableProcess> => openOwn(url, workflows)
    const process = await open()
    const users = process.storage.userDirectory({ name: 'people' })
    const { id } = await process.run('w', registration)
    const lease = { leaseMillis: 1_500, sweepMillis: 20 }
    const changed = { runs: dyingStore(process.storage.runs, 'before-commit'), subjects: subjectQueue() }
    process.worker({ ...lease, drainMillis: 1 }, changed)
    const created = async () => (await users.lookupUserByLogin('newhire')) !== undefined
    await expect.poll(created, { timeout: 10_000 }).toBe(true)
    const other = await open()
    other.worker(lease)
    expect(await other.settled(id)).toMatchObject({ state: 'completed' })

    const again = await other.run('w', registration)
    expect(await other.settled(again.id)).toMatchObject({ state: 'failed', incident })
  })

  test('a target that does not answer is retried, and an administrator may retry', async () => {
    const store = new MemoryTarget()
    let failures = 2
    store.before = ({ method }) => {
      if (method === 'setUserPassword' && failures-- > 0) throw new GatewayError('TARGET_UNREACHABLE', 'down')
    }
    const process = await openDurable(await freshUrl(), { workflows: { w: [provision()] }, targets: { store } })
    const { id } = await process.run('w', registration)
    process.worker()
    expect(await process.settled(id)).toMatchObject({ state: 'completed' })
    expect(store.passwords.get('newhire')).toBe('attackers-own')
  })
})

function revoke(kind: string, name: string): TaskSpec {
  return { taskType: 'customTask', className: 'tasks.RevokeAccess', params: { target: 'store', kind, name } }
}
