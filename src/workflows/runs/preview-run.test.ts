import fc from 'fast-check'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { GatewayError } from '#kernel/errors.ts'
import { onContext, type Preview } from '#sdk/workflow/preview.ts'
import { next } from '#sdk/workflow/workflow-task.ts'
import { sampled } from '#testing/hostile/sample.ts'
import { directoryEntry } from '#testing/modules/directory-entry.ts'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import type { GivenCall } from '#testing/workflows/given-call.ts'
import { customTask, type FixtureOptions, startWorkflows, type TaskSpec } from '#testing/workflows/workflow-fixture.ts'
import type { RunProgress } from '#workflows/steps/run-progress.ts'
import { previewLimits, previewRun } from './previews.ts'

const provision = (extra = {}): TaskSpec => ({ taskType: 'provision', target: 'store', sync: true, ...extra })
const approval = (label: string, onSuccess: readonly TaskSpec[] = []): TaskSpec => ({
  taskType: 'approval',
  label,
  emailTemplate: 'Please decide.',
  mailAttr: 'mail',
  failureEmailSubject: 'No',
  failureEmailMsg: 'No',
  approvers: [{ scope: 'filter', constraint: '(uid=boss)' }],
  onSuccess,
})

type Call = GivenCall & { attributes?: Record<string, string[]>; groups?: string[] }

const stored = () =>
  new MemoryTarget([{ userID: 'ann', attributes: { mail: ['old@x.org'], phone: ['1'] }, groups: ['staff', 'interns'] }])

interface Options extends Omit<FixtureOptions, 'workflows'> {
  readonly store?: MemoryTarget
  readonly others?: FixtureOptions['workflows']
}

/** Previews a run about Ann from the first task on; `change` may prepare the run. */
async function preview(
  tasks: readonly TaskSpec[],
  call: Call = {},
  { store = stored(), others = {}, targets = {}, ...options }: Options = {},
  change: (state: RunProgress) => void = () => {},
  onEnd: () => void = () => {},
): Promise<Preview> {
  const fixture = await startWorkflows({
    ...options,
    workflows: { w: tasks, ...others },
    targets: { store, ...targets },
  })
  const { attributes = {}, groups = [], head: given, ...more } = call
  const user = { userID: 'ann', attributes: Attributes.from(attributes), groups }
  const head = { workflow: 'w', requester: 'caller', ...given }
  const state = fixture.workflows.begin({ head, params: {}, user, ...more })
  change(state)
  const result = await previewRun(state, fixture.workflows, { onEnd })
  expect(fixture.audit.rows).toEqual([])
  expect(store.methods().filter((method) => method !== 'findUser')).toEqual([])
  return result
}

const entry = (more: object) => ({
  kind: 'user',
  action: 'change',
  target: 'store',
  name: 'ann',
  attributes: [],
  joins: [],
  leaves: [],
  cut: false,
  ...more,
})
const value = (name: string, before: string[], after: string[]) => ({ name, secret: false, before, after })

describe('accounts', () => {
  test('a change is shown with the values before and after; unchanged values are left out', async () => {
    const { steps, whole } = await preview(
      [
        { taskType: 'addGroup', name: 'vault', expiresAfter: '8h' },
        provision({ attributes: ['mail', 'phone', 'note'] }),
      ],
      { attributes: { mail: ['new@x.org'], phone: ['1'], note: ['n'] }, keepGroups: true },
    )
    expect(steps).toEqual([
      entry({
        attributes: [value('mail', ['old@x.org'], ['new@x.org']), value('note', [], ['n'])],
        joins: ['vault'],
      }),
      { kind: 'end', target: 'store', of: 'group', name: 'vault', expires: new Date('2026-01-02T11:04:05Z') },
    ])
    expect(whole).toBe(true)
  })

  test('only memberships of the groups that the task lists change', async () => {
    const { steps } = await preview([provision({ attributes: ['mail'], groups: ['vault', 'interns'] })], {
      attributes: { mail: ['old@x.org'] },
      groups: ['vault', 'administrators'],
    })
    expect(steps).toEqual([entry({ joins: ['vault'], leaves: ['interns'] })])
  })

  test('no step is shown if nothing changes', async () => {
    expect(
      await preview([provision({ attributes: ['mail'] })], { attributes: { mail: ['old@x.org'] }, keepGroups: true }),
    ).toEqual({
      steps: [],
      whole: true,
    })
  })

  test('they are created, changed based on earlier steps, renamed and deleted', async () => {
    const { steps } = await preview(
      [
        provision({ attributes: ['mail'] }),
        { taskType: 'addAttribute', name: 'mail', value: 'second@x.org' },
        provision({ attributes: ['mail'], sync: false }),
        {
          taskType: 'ifNotUserExists',
          target: 'store',
          uidAttribute: 'uid',
          onSuccess: [{ taskType: 'callWorkflow', name: 'never' }],
        },
        { taskType: 'delete', target: 'store' },
        { taskType: 'delete', target: 'store' },
      ],
      { attributes: { mail: ['first@x.org'] }, groups: ['staff'] },
      { store: new MemoryTarget(), others: { never: [] } },
    )
    expect(steps).toEqual([
      entry({
        action: 'create',
        attributes: [value('mail', [], ['first@x.org'])],
        joins: ['staff'],
      }),
      entry({ attributes: [value('mail', ['first@x.org'], ['first@x.org', 'second@x.org'])] }),
      entry({ action: 'delete', leaves: ['staff'] }),
    ])
    const renamed = await preview([provision(), provision()], { newUserID: 'anna', keepGroups: true })
    expect(renamed.steps).toEqual([entry({ newName: 'anna' })])
  })

  test('the preview reads the same data from a target only once', async () => {
    const store = stored()
    await preview(
      [
        customTask('tasks.LoadAttributesFromTarget', { target: 'store', nameAttr: 'uid', name: ['mail', 'phone'] }),
        customTask('tasks.LoadGroupsFromTarget', { target: 'store', nameAttr: 'uid' }),
        { taskType: 'addGroup', name: 'vault' },
        provision({ attributes: ['mail'] }),
        provision({ attributes: ['phone'] }),
      ],
      {},
      { store },
    )
    expect(store.calls).toHaveLength(1)
  })

  test('revoked memberships are shown', async () => {
    const revoke = (kind: string, name: string) => customTask('tasks.RevokeAccess', { target: 'store', kind, name })
    const { steps } = await preview([revoke('group', 'Interns'), revoke('group', 'none'), revoke('user', 'ann')])
    expect(steps).toEqual([entry({ leaves: ['interns'] }), entry({ action: 'delete', leaves: ['staff'] })])
  })
})

describe('secrets', () => {
  test('are shown by name only, also in values that are built from them', async () => {
    const store = new MemoryTarget([
      { userID: 'ann', attributes: { apiToken: ['held-hush'], userPassword: ['held-hush'] } },
    ])
    const result = await preview(
      [
        customTask('tasks.LoadAttributesFromTarget', { target: 'store', nameAttr: 'uid', name: ['apiToken'] }),
        { taskType: 'addAttribute', name: 'note', value: '${userPassword} $token$ ${apiToken}' },
        { taskType: 'ifAttrExists', name: 'userPassword', onSuccess: [provision({ setPassword: true })] },
      ],
      { attributes: { userPassword: ['hush'] }, params: { token: 'hush' }, password: 'hush', keepGroups: true },
      { store },
    )
    expect(JSON.stringify(result)).not.toContain('hush')
    expect(result.steps).toMatchObject([
      {
        action: 'change',
        attributes: [
          { name: 'userPassword', secret: true, before: [], after: [] },
          { name: 'note', secret: false, before: [], after: ['•••••• •••••• •••••'] },
        ],
      },
      { action: 'change', attributes: [{ name: 'password', secret: true, before: [], after: [] }] },
    ])
  })
})

describe('what else follows', () => {
  const caller = {
    dn: Dn.parse('uid=caller,o=x'),
    attributes: Attributes.from({ uid: ['caller'], mail: ['caller@x.org'] }),
  }

  test('mails, further approvals, workflows that are called or started, and waiting', async () => {
    const { steps, whole } = await preview(
      [
        approval('The first', [
          { taskType: 'notifyUser', subject: 'Hello ${mail}', msg: 'secret text', mailAttrib: 'mail' },
        ]),
        approval('The second', [{ taskType: 'callWorkflow', name: 'inner' }]),
        customTask('tasks.AsyncCallWorkflow', { workflowName: 'inner', uidAttributeName: 'TREMOLO_USER_ID' }),
        { taskType: 'pause' },
        { taskType: 'delete', target: 'store' },
      ],
      { attributes: { mail: ['ann@x.org'] } },
      {
        others: { inner: [customTask('tasks.PrintUserInfo')] },
        directory: { search: async () => [directoryEntry(caller)], isMember: async () => false },
        tasks: {
          pause: onContext(({ signal }) => (signal?.kind === 'time' ? next : { kind: 'wait', until: new Date(5) })),
        },
      },
      (state) => {
        state.signal = { kind: 'approval', approval: 'a', approved: true, by: 'boss' }
      },
    )
    expect(steps).toEqual([
      { kind: 'mail', recipient: 'ann@x.org', subject: 'Hello ann@x.org' },
      { kind: 'mail', recipient: 'caller@x.org', subject: 'Hello ann@x.org' },
      { kind: 'approval', label: 'The second' },
      { kind: 'workflow', name: 'inner', apart: false },
      { kind: 'workflow', name: 'inner', apart: true },
      { kind: 'wait', until: new Date(5) },
      entry({ action: 'delete', leaves: ['staff', 'interns'] }),
    ])
    expect(whole).toBe(true)
  })

  test('a task without a preview is named, and the steps after it are shown', async () => {
    const tasks = [{ taskType: 'own' }, provision({ attributes: ['mail'] })]
    const ran: string[] = []
    const run = () => {
      ran.push('own')
      return next
    }
    const { steps, whole } = await preview(tasks, { keepGroups: true }, { tasks: { own: run } })
    expect(steps).toMatchObject([{ kind: 'unforeseen', task: 'own' }, { action: 'change' }])
    expect([whole, ran]).toEqual([true, []])
    const branching = await preview([{ taskType: 'own', onSuccess: [provision()] }], {}, { tasks: { own: run } })
    expect(branching).toEqual({ steps: [{ kind: 'unforeseen', task: 'own' }], whole: false })
  })

  test('a custom task is shown by its class name', async () => {
    const script = 'function doTask() { return true }'
    const { steps } = await preview([customTask('tasks.JavaScriptTask', { javaScript: script })])
    expect(steps).toEqual([{ kind: 'unforeseen', task: 'tasks.JavaScriptTask' }])
  })
})

describe('errors', () => {
  const broken = () => {
    const store = stored()
    store.before = () => {
      throw new GatewayError('TARGET_UNREACHABLE', 'ldap://10.0.0.1 refused')
    }
    return store
  }

  test('an unreachable target is shown with its public error text, and other targets are still read', async () => {
    const result = await preview(
      [provision({ target: 'broken' }), provision({ attributes: ['mail'] })],
      { keepGroups: true },
      { targets: { broken: broken() } },
    )
    expect(result.steps).toMatchObject([
      { kind: 'unforeseen', task: 'provision', reason: 'A downstream system did not answer.' },
      { action: 'change', target: 'store' },
    ])
    expect(JSON.stringify(result)).not.toContain('10.0.0.1')
  })

  test('the preview ends at a branch whose condition is unknown', async () => {
    const ask = { taskType: 'ifNotUserExists', target: 'broken', uidAttribute: 'uid' }
    const result = await preview([{ ...ask, onFailure: [provision()] }], {}, { targets: { broken: broken() } })
    expect(result).toMatchObject({ steps: [{ kind: 'unforeseen', task: 'ifNotUserExists' }], whole: false })
  })

  test('the preview does not wait for a slow target, but keeps its slot until the target answers', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const store = stored()
    const asked = Promise.withResolvers<void>()
    const answer = Promise.withResolvers<void>()
    store.before = () => {
      asked.resolve()
      return answer.promise
    }
    const ended = Promise.withResolvers<void>()
    let isEnded = false
    const tasks = [{ taskType: 'callWorkflow', name: 'inner' }, provision()]
    const result = preview(
      tasks,
      {},
      { store, others: { inner: [] } },
      () => {},
      () => {
        isEnded = true
        ended.resolve()
      },
    )
    await asked.promise
    vi.advanceTimersByTime(previewLimits.millis)
    expect(await result).toEqual({ steps: [{ kind: 'workflow', name: 'inner', apart: false }], whole: false })
    expect(isEnded).toBe(false)
    answer.resolve()
    await ended.promise
    expect(store.methods()).toEqual(['findUser'])
  })

  test('reads, steps and texts are limited', async () => {
    const names = Array.from({ length: 40 }, (_, i) => `t${i}`)
    const targets = Object.fromEntries(names.map((name) => [name, new MemoryTarget()]))
    const many = await preview(
      names.map((target) => provision({ target })),
      {},
      { targets },
    )
    expect([many.steps.length, many.whole]).toEqual([20, false])
    expect(Object.values(targets).filter(({ calls }) => calls.length > 0)).toHaveLength(20)

    const long = Array.from({ length: 300 }, (): TaskSpec => ({ taskType: 'addGroup', name: 'g' }))
    expect((await preview(long)).whole).toBe(false)

    const loud = Array.from({ length: 150 }, (): TaskSpec => ({ taskType: 'callWorkflow', name: 'inner' }))
    const result = await preview(loud, {}, { others: { inner: [] } })
    expect([result.steps.length, result.whole]).toEqual([100, false])

    const values = Array.from({ length: 200 }, (_, i) => `${i}`.repeat(1_000))
    const wide = await preview([provision()], { attributes: { wide: values }, keepGroups: true })
    const [first] = wide.steps
    expect(first).toMatchObject({ cut: true })
    expect(JSON.stringify(wide).length).toBeLessThan(20_000)
  })

  test('a workflow that waits forever ends the preview', async () => {
    const { whole } = await preview(
      [{ taskType: 'forever' }],
      {},
      { tasks: { forever: onContext(() => ({ kind: 'wait', until: new Date(0) })) } },
    )
    expect(whole).toBe(false)
  })
})

describe('the preview equals the changes of a real run', () => {
  const names = ['a', 'b', 'c'] as const
  const groups = ['staff', 'vault', 'admins'] as const
  const one = fc.constantFrom(...names)
  const leaf: fc.Arbitrary<TaskSpec> = fc.oneof(
    fc.record({ taskType: fc.constant('addAttribute'), name: one, value: one, remove: fc.boolean() }),
    fc.record({
      taskType: fc.constant('addGroup'),
      name: fc.constantFrom(...groups),
      remove: fc.boolean().map(String),
    }),
    fc.record({
      taskType: fc.constant('provision'),
      target: fc.constant('store'),
      sync: fc.boolean(),
      onlyPassedInAttributes: fc.boolean(),
      attributes: fc.uniqueArray(one),
    }),
    fc.constant({ taskType: 'delete', target: 'store' }),
    fc.constant(customTask('tasks.ClearGroups')),
    fc.constant(customTask('tasks.LoadGroupsFromTarget', { target: 'store', nameAttr: 'uid' })),
    one.map((name) => customTask('tasks.LoadAttributesFromTarget', { target: 'store', nameAttr: 'uid', name: [name] })),
  )
  const branch: fc.Arbitrary<TaskSpec> = fc.record({
    taskType: fc.constant('ifAttrExists'),
    name: one,
    onSuccess: fc.array(leaf, { maxLength: 3 }),
    onFailure: fc.array(leaf, { maxLength: 3 }),
  })
  const attributes = fc.dictionary(one, fc.uniqueArray(one, { minLength: 1, maxLength: 3 }), { maxKeys: 3 })
  const held = fc.option(fc.record({ attributes, groups: fc.uniqueArray(fc.constantFrom(...groups)) }), {
    nil: undefined,
  })

  test('for any workflow of these tasks and any account', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(leaf, branch), { maxLength: 8 }),
        held,
        attributes,
        fc.boolean(),
        async (tasks, account, given, keepGroups) => {
          const fresh = () => new MemoryTarget(account === undefined ? [] : [{ userID: 'ann', ...account }])
          const before = fresh().stored('ann')
          const { steps, whole } = await preview(tasks, { attributes: given, keepGroups }, { store: fresh() })
          const real = fresh()
          const { run } = await startWorkflows({ workflows: { w: tasks }, targets: { store: real } })
          const failed = await run('w', { userID: 'ann', attributes: given, keepGroups }).then(
            () => false,
            () => true,
          )
          expect(steps.some(({ kind }) => kind === 'unforeseen')).toBe(failed)
          if (!failed) expect([whole, sorted(applied(before, steps))]).toEqual([true, sorted(real.stored('ann'))])
        },
      ),
      { numRuns: sampled(100, 300) },
    )
  })

  interface Account {
    readonly attributes: Record<string, string[]>
    readonly groups: string[]
  }

  /** The account after the steps of a preview. */
  function applied(account: Account | undefined, steps: Preview['steps']): Account | undefined {
    let state = account
    for (const step of steps) {
      if (step.kind !== 'user') continue
      if (step.action === 'delete') {
        state = undefined
        continue
      }
      const changed = { ...state?.attributes }
      for (const { name, after } of step.attributes) {
        if (after.length === 0) delete changed[name]
        else changed[name] = [...after]
      }
      const left = (state?.groups ?? []).filter((group) => !step.leaves.includes(group))
      state = { attributes: changed, groups: [...left, ...step.joins] }
    }
    return state
  }

  const sorted = (account: Account | undefined) =>
    account && {
      attributes: Object.fromEntries(Object.entries(account.attributes).map(([name, all]) => [name, all.toSorted()])),
      groups: account.groups.toSorted(),
    }
})
