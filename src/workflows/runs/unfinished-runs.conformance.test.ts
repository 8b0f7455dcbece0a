import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import type { User } from '#identity/user.ts'
import { type ErrorCode, GatewayError } from '#kernel/errors.ts'
import type { PlannedWrite } from '#sdk/target/target.ts'
import type { WorkflowCall } from '#sdk/workflow/workflow.ts'
import { next, type WorkflowTask } from '#sdk/workflow/workflow-task.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import { type DurableProcess, dyingStore, openDurable } from '#testing/workflows/durable-fixture.ts'
import type { GivenCall } from '#testing/workflows/given-call.ts'
import { userRef } from '#testing/workflows/user-ref.ts'
import { recordingLogger } from '#testing/workflows/workflow-fixture.ts'
import { UnfinishedRun } from '#workflows/record/run-requests.ts'

const addMail = { taskType: 'addAttribute', name: 'mail', value: 'a@example.com' }
const provision = (target: string) => ({ taskType: 'provision', target, sync: true })
const workflows = {
  one: [provision('first')],
  both: [addMail, provision('first'), provision('second')],
  leave: [
    { taskType: 'delete', target: 'first' },
    { taskType: 'delete', target: 'second' },
  ],
}

const callOf = ({ head, ...more }: GivenCall = {}): WorkflowCall => ({
  head: { workflow: 'both', requester: 'caller', ...head },
  params: {},
  user: { userID: 'ann', attributes: new Attributes(), groups: [] },
  resource: 'user 1',
  ...more,
})

/** A target that fails its writes with this code, as long as there is one. */
class FailingTarget extends MemoryTarget {
  code: ErrorCode | undefined

  constructor(users: ConstructorParameters<typeof MemoryTarget>[0] = []) {
    super(users)
    this.before = ({ method }) => {
      if (this.code !== undefined && method !== 'findUser') {
        throw new GatewayError(this.code, 'it fails')
      }
    }
  }
}

/** A target that has a place for mail only. */
class LimitedTarget extends MemoryTarget {
  override readonly renamesUsers: boolean

  constructor(users: ConstructorParameters<typeof MemoryTarget>[0] = [], renames = true) {
    super(users)
    this.renamesUsers = renames
  }

  async requirePlaces({ attributes: values }: User, { attributes }: PlannedWrite): Promise<void> {
    const odd = attributes.find((name) => name !== 'mail' && values.has(name))
    if (odd === undefined) return
    const publicText = `"${odd}" has no place here.`
    throw new GatewayError('BAD_REQUEST', publicText, { publicText })
  }
}

const failureOf = async (work: Promise<unknown>): Promise<UnfinishedRun> => {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(UnfinishedRun)
  return error as UnfinishedRun
}

const settle = (process: DurableProcess) =>
  process.runs.settle({ subjects: ['ann'], resource: 'user 1', requester: 'caller' })

onEachDatabase('runs that change several targets within their calls', (freshUrl) => {
  const open = async (url: string, first: MemoryTarget, second: MemoryTarget) =>
    await openDurable(url, { workflows, targets: { first, second } })

  test('leave nothing behind when they end', async () => {
    const [first, second] = [new FailingTarget(), new FailingTarget()]
    const process = await open(await freshUrl(), first, second)
    expect(await process.runs.run(callOf())).toMatchObject({
      status: 'completed',
      changes: 4,
      written: ['first', 'second'].map((target) => ({ target, attribute: 'mail' })),
    })
    expect([first, second].map((target) => target.stored('ann')?.attributes)).toEqual([
      { mail: ['a@example.com'] },
      { mail: ['a@example.com'] },
    ])
    expect((await process.storage.runs.list({ limit: 5 })).runs).toEqual([])
    expect((await process.storage.audit.list({ subject: 'ann', limit: 10 })).rows).toHaveLength(4)
    expect(await settle(process)).toEqual({ finished: [], refused: [] })
  })

  test('are stored as failed, with their steps, only if they are kept', async () => {
    const [first, second] = [new FailingTarget(), new FailingTarget()]
    first.code = 'BAD_REQUEST'
    const process = await open(await freshUrl(), first, second)
    await expect(process.runs.run(callOf())).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    expect((await process.storage.runs.list({ limit: 5 })).runs).toEqual([])
    await expect(process.runs.run(callOf({ kept: true }))).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    expect((await process.storage.runs.list({ limit: 5 })).runs).toMatchObject([
      { state: 'failed', incident: { task: 'both:1', code: 'BAD_REQUEST', target: 'first' } },
    ])
    expect(first.stored('ann')).toBeUndefined()
  })

  test('are logged for an administrator only if one can find them', async () => {
    const [first, second] = [new FailingTarget(), new FailingTarget()]
    const log = recordingLogger()
    const process = await openDurable(await freshUrl(), { workflows, targets: { first, second } }, { log })
    const logged = (): unknown[] =>
      log.lines
        .filter(({ message }) => message === 'a run needs an administrator')
        .map(({ fields }) => fields['workflowId'])
    first.code = 'BAD_REQUEST'
    await expect(process.runs.run(callOf())).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    expect(logged()).toEqual([])
    first.code = undefined
    second.code = 'BAD_REQUEST'
    const { run } = await failureOf(process.runs.run(callOf()))
    expect(logged()).toEqual([run])
    expect(await process.storage.runs.get(run)).toMatchObject({ state: 'incident' })
  })

  describe('are refused before the first of them changes', () => {
    const both = [{ userID: 'ann' }]
    const renamed = callOf({ newUserID: 'anna', keepGroups: true })
    const withTitle = callOf({
      user: { userID: 'ann', attributes: Attributes.from({ title: ['Dr'] }), groups: [] },
      keepGroups: true,
    })

    test.each([
      {
        what: 'a login that another account has',
        users: [...both, { userID: 'Anna' }],
        call: renamed,
        code: 'CONFLICT',
        text: 'Target "second" has another account with this login. Choose another login, or change that account.',
      },
      {
        what: 'a login that cannot change',
        users: both,
        call: renamed,
        code: 'NOT_SUPPORTED',
        text: expect.any(String),
      },
      {
        what: 'an attribute without a place, in a change',
        users: both,
        call: withTitle,
        code: 'BAD_REQUEST',
        text: '"title" has no place here. Target "second" refuses it.',
      },
      {
        what: 'an attribute without a place, in a new account',
        users: [],
        call: withTitle,
        code: 'BAD_REQUEST',
        text: '"title" has no place here. Target "second" refuses it.',
      },
    ] as const)('$what', async ({ users, call, code, text }) => {
      const [first, second] = [new FailingTarget(users.slice(0, 1)), new LimitedTarget(users, code !== 'NOT_SUPPORTED')]
      const process = await open(await freshUrl(), first, second)
      await expect(process.runs.run(call)).rejects.toMatchObject({ code, publicText: text })
      expect((await process.storage.runs.list({ limit: 5 })).runs).toEqual([])
      await expect(process.runs.run({ ...call, kept: true })).rejects.toMatchObject({ code })
      expect((await process.storage.runs.list({ limit: 5 })).runs).toMatchObject([
        { state: 'failed', touched: false, incident: { task: 'both:2', code, target: 'second' } },
      ])
      for (const target of [first, second]) expect(new Set(target.methods())).toEqual(new Set(['findUser']))
    })

    test('if they are based on another version, whichever target has it', async () => {
      const [first, second] = [new FailingTarget(both), new FailingTarget(both)]
      const process = await open(await freshUrl(), first, second)
      const stale = callOf({ basedOn: { target: 'second', version: '7' } })
      await expect(process.runs.run(stale)).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
      expect(first.methods()).toEqual(['findUser'])
    })
  })

  test('are executed as far as possible if what follows is not known', async () => {
    const [first, second] = [new FailingTarget(), new LimitedTarget()]
    const unknown = { taskType: 'own' }
    const steps = { both: [provision('first'), unknown, provision('second')] }
    const drop: WorkflowTask['run'] = ({ user }) => {
      user.attributes.delete('title')
      return next
    }
    const process = await openDurable(await freshUrl(), {
      workflows: steps,
      targets: { first, second },
      tasks: { own: drop },
    })
    const user = { userID: 'ann', attributes: Attributes.from({ title: ['Dr'] }), groups: [] }
    expect(await process.runs.run(callOf({ user }))).toMatchObject({ status: 'completed' })
    expect(second.stored('ann')?.attributes).toEqual({})
  })

  test('that write one target read it as often as they did without other targets', async () => {
    const target = new FailingTarget()
    const process = await openDurable(await freshUrl(), {
      workflows: { both: [addMail, provision('first'), provision('first')] },
      targets: { first: target },
    })
    await process.runs.run(callOf())
    expect(target.methods()).toEqual(['findUser', 'createUser', 'findUser'])
  })

  describe('and fail part way', () => {
    test('are completed by a worker, and later changes wait for them', async () => {
      const [first, second] = [new FailingTarget(), new FailingTarget()]
      const process = await open(await freshUrl(), first, second)
      second.code = 'TARGET_UNREACHABLE'
      const failure = await failureOf(process.runs.run(callOf()))
      expect(failure).toMatchObject({ status: 503, retryAfter: 5 })
      expect(failure.publicText).toBe(
        `A downstream system did not answer. It is unknown whether the target "second" has made the change. Run ${failure.run} tries again. Send the request again later.`,
      )
      expect(first.stored('ann')).toBeDefined()
      expect(await process.storage.runs.get(failure.run)).toMatchObject({
        state: 'ready',
        touched: true,
        resource: 'user 1',
      })
      process.worker({ retries: { attempts: 8, unknownAttempts: 3, firstMillis: 60_000, mostMillis: 60_000 } })
      await expect(settle(process)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE', retryAfter: 5 })
      second.code = undefined
      expect(await settle(process)).toEqual({ finished: ['user 1'], refused: [] })
      expect(second.stored('ann')?.attributes).toEqual({ mail: ['a@example.com'] })
      expect((await process.storage.runs.get(failure.run))?.state).toBe('completed')
      const { rows } = await process.storage.audit.list({ workflowId: failure.run, limit: 10 })
      expect(rows.map(({ target, attribute }) => `${target} ${attribute}`).sort()).toEqual([
        'first mail',
        'first userID',
        'second mail',
        'second userID',
      ])
    })

    test('are found by the resource when the user is gone from the first target', async () => {
      const users = [{ userID: 'ann' }]
      const [first, second] = [new FailingTarget(users), new FailingTarget(users)]
      const process = await open(await freshUrl(), first, second)
      second.code = 'TARGET_TIMEOUT'
      await failureOf(process.runs.run(callOf({ head: { workflow: 'leave' } })))
      expect(first.stored('ann')).toBeUndefined()
      const settleById = () => process.runs.settle({ subjects: [], resource: 'user 1', requester: 'caller' })
      process.worker()
      second.code = undefined
      expect(await settleById()).toEqual({ finished: ['user 1'], refused: [] })
      expect(second.stored('ann')).toBeUndefined()
    })

    test('become incidents if a target refuses the change, and a later change replaces them', async () => {
      const [first, second] = [new FailingTarget(), new FailingTarget()]
      const process = await open(await freshUrl(), first, second)
      second.code = 'CONFLICT'
      const refused = await failureOf(process.runs.run(callOf()))
      expect(refused).toMatchObject({ status: 500, code: 'WORKFLOW_FAILED', retryAfter: undefined })
      expect(refused.publicText).toBe(
        `The request conflicts with the present state. The change was made in part. The target "second" has not completed it. Run ${refused.run} needs an administrator.`,
      )
      process.worker()
      // Tried again, and refused again.
      const { refused: replaces } = await settle(process)
      expect(replaces).toMatchObject([
        { id: refused.run, resource: 'user 1', requester: 'caller', written: expect.arrayContaining(['mail']) },
      ])
      // Without another change, the incident stays.
      expect(await failureOf(process.runs.run(callOf({ replaces })))).toMatchObject({ status: 500, run: refused.run })
      // With another change, the later run takes its place.
      const user = { userID: 'ann', attributes: Attributes.from({ title: ['Dr'] }), groups: [] }
      const later = await failureOf(process.runs.run(callOf({ user, replaces })))
      expect(await process.storage.runs.get(refused.run)).toMatchObject({ state: 'cancelled' })
      const left = await settle(process)
      expect(left.refused).toMatchObject([{ id: later.run }])
      // A rename can't be replaced, since no later run knows the former login.
      const renamed = await failureOf(process.runs.run(callOf({ newUserID: 'anna', replaces: left.refused })))
      const [{ id, written } = { id: '' }] = (await settle(process)).refused
      expect([id, written]).toEqual([renamed.run, undefined])
      second.code = undefined
      expect(await settle(process)).toEqual({ finished: ['user 1'], refused: [] })
      expect(second.stored('anna')).toBeDefined()
    })

    test('keep the answer of their key', async () => {
      const [first, second] = [new FailingTarget(), new FailingTarget()]
      const process = await open(await freshUrl(), first, second)
      second.code = 'TARGET_UNREACHABLE'
      const key = { scope: 's', key: 'k', bodyHash: 'b' }
      const { run } = await failureOf(process.runs.start(callOf({ kept: true }), key))
      expect(await failureOf(process.runs.start(callOf({ kept: true }), key))).toMatchObject({ run, status: 503 })
      second.code = undefined
      process.worker()
      await process.settled(run, 'completed')
      expect(await process.runs.start(callOf({ kept: true }), key)).toEqual({
        kind: 'repeated',
        result: { id: run, status: 'completed', changes: 4 },
      })
    })

    test('answer their key with what an operator decided', async () => {
      const [first, second] = [new FailingTarget(), new FailingTarget()]
      const process = await open(await freshUrl(), first, second)
      second.code = 'CONFLICT'
      const key = { scope: 's', key: 'k', bodyHash: 'b' }
      const { run } = await failureOf(process.runs.start(callOf({ kept: true }), key))
      expect(await failureOf(process.runs.start(callOf({ kept: true }), key))).toMatchObject({ run, status: 500 })
      const { fence = 0 } = (await process.storage.runs.get(run)) ?? {}
      await process.runs.cancel({ id: run, fence, by: userRef('operator') })
      await expect(process.runs.start(callOf({ kept: true }), key)).rejects.toMatchObject({
        code: 'CONFLICT',
        publicText: `The run ${run} of this call has ended as cancelled.`,
      })
    })

    test('are met by equal calls without a key, and answered as completed once they are', async () => {
      const [first, second] = [new FailingTarget(), new FailingTarget()]
      const process = await open(await freshUrl(), first, second)
      process.worker({ retries: { attempts: 8, unknownAttempts: 3, firstMillis: 60_000, mostMillis: 60_000 } })
      const call = callOf({ kept: true, resource: 'call 1' })
      second.code = 'TARGET_UNREACHABLE'
      const { run } = await failureOf(process.runs.start(call))
      const again = await failureOf(process.runs.start(call))
      expect(again).toMatchObject({ run, status: 503, retryAfter: 5 })
      expect(again.publicText).toBe(
        `The same change was requested before and is unfinished. Run ${run} tries again. Send the request again later.`,
      )
      expect((await process.storage.runs.list({ limit: 5 })).runs).toHaveLength(1)
      // Another call for the user waits for it, and is stored behind it.
      expect(await process.runs.start(callOf({ kept: true, resource: 'call 2' }))).toMatchObject({
        result: { status: 'accepted' },
      })
      second.code = undefined
      expect(await process.runs.start(call)).toEqual({
        kind: 'repeated',
        result: { id: run, status: 'completed', changes: 4 },
      })
    })

    test('are tried again before a change of the user by another client', async () => {
      const [first, second] = [new FailingTarget(), new FailingTarget()]
      const process = await open(await freshUrl(), first, second)
      process.worker()
      second.code = 'CONFLICT'
      const { run } = await failureOf(process.runs.start(callOf({ kept: true, resource: 'call 1' })))
      expect((await settle(process)).refused).toMatchObject([{ id: run, resource: 'call 1' }])
      second.code = undefined
      expect((await settle(process)).refused).toEqual([])
      expect((await process.storage.runs.get(run))?.state).toBe('completed')
    })

    test('come before a call that waited for them in the same process', async () => {
      const [first, second] = [new FailingTarget(), new FailingTarget()]
      const process = await open(await freshUrl(), first, second)
      const gate = Promise.withResolvers<void>()
      second.before = async ({ method }) => {
        if (method !== 'createUser') return
        await gate.promise
        throw new GatewayError('TARGET_UNREACHABLE', 'it fails')
      }
      const earlier = failureOf(process.runs.start(callOf({ kept: true, resource: 'call 1' })))
      await expect.poll(() => second.methods()).toContain('createUser')
      const later = process.runs.start(callOf({ kept: true, resource: 'call 2' }))
      gate.resolve()
      await earlier
      await expect(later).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE', retryAfter: 5 })
      expect((await process.storage.runs.list({ limit: 5 })).runs).toHaveLength(1)
    })

    test('are not continued after a newer change of the user, and an equal call replaces them', async () => {
      const [first, second] = [new FailingTarget(), new FailingTarget()]
      const process = await open(await freshUrl(), first, second)
      process.worker()
      const call = callOf({ kept: true, resource: 'call 1' })
      second.code = 'CONFLICT'
      const { run } = await failureOf(process.runs.start(call))
      second.code = undefined
      const user = { userID: 'ann', attributes: Attributes.from({ title: ['Dr'] }), groups: [] }
      const newer = await process.runs.run(callOf({ head: { workflow: 'one' }, user }))
      const { fence = 0 } = (await process.storage.runs.get(run)) ?? {}
      for (const action of ['retry', 'skip'] as const) {
        await expect(process.runs[action]({ id: run, fence, by: userRef('operator') })).rejects.toMatchObject({
          code: 'CONFLICT',
          publicText: expect.stringMatching(
            new RegExp(
              `^This run would undo a newer change: "ann" was changed at .* by run ${newer.id} \\(one\\)\\. Request`,
            ),
          ),
        })
      }
      expect(second.stored('ann')).toBeUndefined()
      expect(await process.runs.start(call)).toMatchObject({ kind: 'started', result: { status: 'completed' } })
      expect(second.stored('ann')).toBeDefined()
      expect(await process.storage.runs.get(run)).toMatchObject({ state: 'cancelled' })
    })

    test('set the password at every target, encrypted while they are stored', async () => {
      const [first, second, third] = [new FailingTarget(), new FailingTarget(), new FailingTarget()]
      const passwords = [
        { ...provision('first'), setPassword: true },
        { ...provision('second'), setPassword: true },
        { taskType: 'delete', target: 'third' },
      ]
      const targets = { first, second, third }
      const process = await openDurable(await freshUrl(), { workflows: { passwords }, targets })
      second.code = 'TARGET_UNREACHABLE'
      third.put({ userID: 'ann' })
      third.code = 'CONFLICT'
      const { run } = await failureOf(
        process.runs.run(callOf({ head: { workflow: 'passwords' }, password: 'hunter2' })),
      )
      const stored = await process.storage.runs.getWhole(run)
      expect(stored?.secret).toBeDefined()
      expect(JSON.stringify(stored)).not.toContain('hunter2')
      second.code = undefined
      process.worker()
      const incident = await process.settled(run, 'incident')
      expect([first, second].map(({ passwords }) => passwords.get('ann'))).toEqual(['hunter2', 'hunter2'])
      // No later task needs it.
      expect((await process.storage.runs.getWhole(run))?.secret).toBeUndefined()
      expect(JSON.stringify(incident)).not.toContain('hunter2')
    })

    test('are finished despite their deadline, and never end as expired', async () => {
      const [first, second] = [new FailingTarget(), new FailingTarget()]
      const process = await open(await freshUrl(), first, second)
      const timers = process.timers()
      second.code = 'TARGET_UNREACHABLE'
      const { run } = await failureOf(process.runs.run(callOf({ head: { deadline: new Date() } })))
      const stored = callOf({ user: { userID: 'bob', attributes: new Attributes(), groups: [] }, asynchronous: true })
      const { id } = await process.runs.run({
        ...stored,
        head: { ...stored.head, deadline: new Date(Date.now() + 1_000) },
      })
      process.worker()
      const incidents = [await process.settled(run, 'incident'), await process.settled(id, 'incident')]
      expect(incidents.map(({ incident }) => incident?.code)).toEqual(['TARGET_UNREACHABLE', 'TARGET_UNREACHABLE'])
      await delay(1_000)
      await timers.sweep()
      second.code = undefined
      expect(await settle(process)).toEqual({ finished: ['user 1'], refused: [] })
      const { fence = 0, state } = (await process.storage.runs.get(id)) ?? {}
      expect(state).toBe('incident')
      await process.runs.retry({ id, fence, by: userRef('operator') })
      await process.settled(id, 'completed')
      expect(['ann', 'bob'].map((login) => second.stored(login))).not.toContain(undefined)
    })

    test('become incidents that are tried again with the next change, if their attempts are used up', async () => {
      const [first, second] = [new FailingTarget(), new FailingTarget()]
      const process = await open(await freshUrl(), first, second)
      second.code = 'TARGET_UNREACHABLE'
      const { run } = await failureOf(process.runs.run(callOf()))
      process.worker()
      await process.settled(run, 'incident')
      second.code = undefined
      expect(await settle(process)).toEqual({ finished: ['user 1'], refused: [] })
      expect(second.stored('ann')).toBeDefined()
    })
  })

  test.each(['before-target', 'before-commit', 'after-commit'] as const)(
    'are completed by another process if theirs dies %s',
    async (point) => {
      const url = await freshUrl()
      const [first, second] = [new FailingTarget(), new FailingTarget()]
      const dying = await openDurable(
        url,
        { workflows, targets: { first, second } },
        { changed: ({ runs }) => ({ runs: dyingStore(runs, point), leaseMillis: 200 }) },
      )
      void dying.runs.run(callOf()).catch(() => {})
      await expect.poll(async () => (await dying.storage.runs.figures()).running).toBe(1)
      const other = await open(url, first, second)
      other.worker()
      await expect.poll(() => settle(other).catch(() => undefined), { timeout: 30_000 }).toMatchObject({ refused: [] })
      expect([first, second].map((target) => target.stored('ann')?.attributes)).toEqual([
        { mail: ['a@example.com'] },
        { mail: ['a@example.com'] },
      ])
      const { rows } = await other.storage.audit.list({ subject: 'ann', limit: 20 })
      expect(rows.map(({ target, attribute }) => `${target} ${attribute}`).sort()).toEqual([
        'first mail',
        'first userID',
        'second mail',
        'second userID',
      ])
    },
  )

  test('are executed one after the other for a user, in all processes', async () => {
    const url = await freshUrl()
    const [first, second] = [new FailingTarget(), new FailingTarget()]
    const gate = Promise.withResolvers<void>()
    second.before = ({ method }) => (method === 'createUser' ? gate.promise : undefined)
    const [one, other] = [await open(url, first, second), await open(url, first, second)]
    const running = one.runs.run(callOf())
    await expect.poll(() => second.methods()).toContain('createUser')
    await expect(settle(other)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE', retryAfter: 5 })
    await expect(other.runs.run(callOf())).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE', retryAfter: 5 })
    const basedOn = { target: 'first', version: '1' }
    await expect(other.runs.run(callOf({ basedOn }))).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
    gate.resolve()
    expect(await running).toMatchObject({ status: 'completed' })
    expect(await settle(other)).toEqual({ finished: [], refused: [] })
  })
})
