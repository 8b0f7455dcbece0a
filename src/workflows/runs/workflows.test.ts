import { describe, expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import type { TaskContext } from '#sdk/workflow/workflow-task.ts'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import { recordingLogger, startWorkflows } from '#testing/workflows/workflow-fixture.ts'
import { subjectQueue } from '#workflows/steps/workflow-services.ts'

const provision = (extra = {}) => ({ taskType: 'provision', target: 'store', sync: true, ...extra })

const groupWorkflow = [
  { taskType: 'customTask', className: 'tasks.PrintUserInfo', params: { message: 'in' } },
  {
    taskType: 'customTask',
    className: 'com.tremolosecurity.provisioning.customTasks.LoadGroupsFromTarget',
    params: { nameAttr: 'username', inverse: 'false', target: 'store' },
  },
  { taskType: 'addGroup', name: '$groupname$', remove: '$removegroup$' },
  provision({ attributes: ['username'] }),
]

describe('a run', () => {
  test('creates the user, writes one batch of audit rows and returns the number of changes', async () => {
    const store = new MemoryTarget()
    const { run, audit } = await startWorkflows({ workflows: { join: [provision()] }, targets: { store } })
    const result = await run('join', { attributes: { mail: ['jj@example.com'] }, head: { requestId: 'req-1' } })
    expect(store.stored('jjackson')).toEqual({ attributes: { mail: ['jj@example.com'] }, groups: [] })
    expect(result.changes).toBe(2)
    expect(audit.writes).toBe(1)
    expect(audit.rows).toMatchObject([
      { kind: 'entry', action: 'add', attribute: 'userID', value: 'jjackson' },
      { kind: 'attribute', action: 'add', attribute: 'mail', value: 'jj@example.com' },
    ])
    for (const row of audit.rows) {
      expect(row).toMatchObject({
        requestor: 'caller',
        subject: 'jjackson',
        target: 'store',
        workflow: { id: result.id, name: 'join' },
        requestId: 'req-1',
      })
    }
    expect(new Set(audit.rows.map(({ id }) => id)).size).toBe(2)
  })

  test('without a change writes nothing to the target and nothing to the audit', async () => {
    const store = new MemoryTarget([{ userID: 'jjackson', attributes: { mail: ['a'] }, groups: ['x'] }])
    const { run, audit } = await startWorkflows({ workflows: { join: [provision()] }, targets: { store } })
    expect(await run('join', { attributes: { mail: ['a'] }, groups: ['x'] })).toMatchObject({ changes: 0 })
    expect(store.methods()).toEqual(['findUser'])
    expect(audit.writes).toBe(0)
  })

  test("does not change the caller's user", async () => {
    const workflows = {
      w: [
        { taskType: 'addAttribute', name: 'mail', value: 'x' },
        { taskType: 'addGroup', name: 'g' },
      ],
    }
    const { workflows: started } = await startWorkflows({ workflows })
    const { Attributes } = await import('#identity/attributes.ts')
    const user = { userID: 'u', attributes: new Attributes(), groups: [] }
    await started.run({ head: { workflow: 'w', requester: 'c' }, params: {}, user })
    expect(user.attributes.size).toBe(0)
    expect(user.groups).toEqual([])
  })

  test('gives each step its own idempotency key, and all steps the run', async () => {
    const store = new MemoryTarget()
    const workflows = { w: [provision(), { taskType: 'delete', target: 'store' }] }
    const { run } = await startWorkflows({ workflows, targets: { store } })
    const { id } = await run('w', { params: { color: 'blue' } })
    expect(store.calls.map(({ request }) => request.idempotencyKey)).toEqual([
      `${id}/1`,
      `${id}/1`,
      `${id}/2`,
      `${id}/2`,
    ])
    expect(store.calls[0]?.request.params).toEqual({ color: 'blue', WORKFLOW_ID: id })
    expect(Object.getPrototypeOf(store.calls[0]?.request.params)).toBeNull()
  })

  test('two concurrent group changes for one user both survive', async () => {
    const store = new MemoryTarget([{ userID: 'jjackson', attributes: { username: ['jjackson'] }, groups: ['group1'] }])
    store.before = () => new Promise((resolve) => setTimeout(resolve, 2))
    const { run } = await startWorkflows({ workflows: { groups: groupWorkflow }, targets: { store } })
    const change = (groupname: string, userID: string) =>
      run('groups', {
        userID,
        attributes: { username: ['jjackson'] },
        keepGroups: true,
        params: { groupname, removegroup: 'false' },
      })
    await Promise.all([change('group2', 'jjackson'), change('group3', 'JJackson'), change('group4', 'jjackson')])
    expect(store.stored('jjackson')?.groups.toSorted()).toEqual(['group1', 'group2', 'group3', 'group4'])
  })

  test('order per subject holds across two configurations that share the queue', async () => {
    const store = new MemoryTarget([{ userID: 'jjackson', groups: ['group1'] }])
    store.before = () => new Promise((resolve) => setTimeout(resolve, 2))
    const options = { workflows: { groups: groupWorkflow }, targets: { store }, subjects: subjectQueue() }
    const [old, fresh] = await Promise.all([startWorkflows(options), startWorkflows(options)])
    const call = (groupname: string) => ({ keepGroups: true, params: { groupname } })
    await Promise.all([old.run('groups', call('group2')), fresh.run('groups', call('group3'))])
    expect(store.stored('jjackson')?.groups.toSorted()).toEqual(['group1', 'group2', 'group3'])
  })
})

describe('refusals', () => {
  test('engine keys do not reach a workflow', async () => {
    const store = new MemoryTarget()
    const { run } = await startWorkflows({ workflows: { w: [provision()] }, targets: { store } })
    const call = run('w', { params: { APPROVAL_IMMEDIATE_ACTION: 'true' } })
    await expect(call).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    expect(store.calls).toEqual([])
  })

  test('a user without a login, and an unknown workflow', async () => {
    const { run } = await startWorkflows({ workflows: { w: [] } })
    await expect(run('w', { userID: '' })).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    await expect(run('nowhere')).rejects.toMatchObject({ code: 'NOT_SUPPORTED' })
  })

  test('a workflow that calls itself through another ends with an error', async () => {
    const call = (name: string) => [{ taskType: 'callWorkflow', name }]
    const { run } = await startWorkflows({ workflows: { a: call('b'), b: call('a') } })
    await expect(run('a')).rejects.toMatchObject({ code: 'WORKFLOW_FAILED' })
  })
})

describe('failure', () => {
  test("a target's own error passes unchanged, is logged with its place, and earlier changes are audited", async () => {
    const store = new MemoryTarget()
    const other = new MemoryTarget()
    const thrown = new GatewayError('TARGET_UNREACHABLE', 'down', { retryAfter: 7 })
    other.before = () => {
      throw thrown
    }
    const log = recordingLogger()
    const workflows = {
      w: [provision(), { taskType: 'ifAttrExists', name: 'mail', onFailure: [provision({ target: 'other' })] }],
    }
    const { run, audit } = await startWorkflows({ workflows, targets: { store, other }, log })
    await expect(run('w')).rejects.toBe(thrown)
    expect(audit.rows).toMatchObject([{ kind: 'entry', action: 'add', target: 'store' }])
    expect(log.lines).toMatchObject([
      { level: 'error', fields: { workflow: 'w', task: 'w:1/onFailure/0', code: 'TARGET_UNREACHABLE' } },
    ])
  })

  test('any other error is WORKFLOW_FAILED with its cause, and reveals nothing to the client', async () => {
    const store = new MemoryTarget()
    const cause = new TypeError('secret detail')
    store.before = () => {
      throw cause
    }
    const { run } = await startWorkflows({ workflows: { w: [provision()] }, targets: { store } })
    const error = await run('w').catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'WORKFLOW_FAILED', status: 500, cause })
    expect((error as GatewayError).publicText).not.toContain('secret')
  })

  test("an audit that can't be written fails the run", async () => {
    const store = new MemoryTarget()
    const cause = new Error('disk full')
    const append = async () => {
      throw cause
    }
    const { run } = await startWorkflows({ workflows: { w: [provision()] }, targets: { store }, append })
    await expect(run('w')).rejects.toMatchObject({ code: 'WORKFLOW_FAILED', cause })
  })

  test('an unavailable audit store says when to retry', async () => {
    const append = () => Promise.reject(new GatewayError('TARGET_UNREACHABLE', 'down', { retryAfter: 5 }))
    const targets = { store: new MemoryTarget() }
    const { run } = await startWorkflows({ workflows: { w: [provision()] }, targets, append })
    await expect(run('w')).rejects.toMatchObject({ status: 503, retryAfter: 5 })
  })

  test('if the run and its audit both fail, both causes are reported', async () => {
    const broken = new GatewayError('TARGET_FAILED', 'no')
    const tasks = {
      half: ({ forTarget }: TaskContext) => {
        forTarget('store').audit({ subject: 'entry', action: 'add', attribute: 'userID', value: 'x' })
        throw broken
      },
    }
    const lost = new Error('disk full')
    const append = () => Promise.reject(lost)
    const targets = { store: new MemoryTarget() }
    const { run } = await startWorkflows({ workflows: { w: [{ taskType: 'half' }] }, tasks, targets, append })
    const error = await run('w').catch((thrown: unknown) => thrown)
    expect(((error as Error).cause as AggregateError).errors).toEqual([broken, lost])
  })

  test('after a failure the next run of the same user begins', async () => {
    const store = new MemoryTarget()
    let down = true
    store.before = () => {
      if (down) throw new GatewayError('TARGET_UNREACHABLE', 'down')
    }
    const { run } = await startWorkflows({ workflows: { w: [provision()] }, targets: { store } })
    await expect(run('w')).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
    down = false
    expect(await run('w')).toMatchObject({ changes: 1 })
  })
})

describe('audit', () => {
  test('values of attributes named like secrets are left out', async () => {
    const store = new MemoryTarget()
    const { run, audit } = await startWorkflows({
      workflows: { w: [provision({ setPassword: true })] },
      targets: { store },
    })
    const attributes = { apiToken: ['t0p'], totpKey: ['k3y'], clientSecret: ['s3c'], mail: ['shown'] }
    await run('w', { attributes, password: 'hunter2' })
    expect(audit.rows.map(({ attribute, value }) => [attribute, value])).toEqual([
      ['userID', 'jjackson'],
      ['apiToken', undefined],
      ['totpKey', undefined],
      ['clientSecret', undefined],
      ['mail', 'shown'],
      ['userPassword', undefined],
    ])
    expect(JSON.stringify(audit.rows)).not.toMatch(/t0p|k3y|s3c|hunter2/)
  })

  test('a target that reports nothing still gets audit rows', async () => {
    const store = new MemoryTarget([], false)
    const workflows = { w: [provision()], bye: [{ taskType: 'delete', target: 'store' }] }
    const { run, audit } = await startWorkflows({ workflows, targets: { store } })
    await run('w', { attributes: { mail: ['a'] }, groups: ['g'] })
    await run('w', { attributes: { mail: ['b'] }, groups: ['h'] })
    await run('bye')
    await run('bye')
    expect(audit.rows.map(({ kind, action, attribute, value }) => `${kind} ${action} ${attribute}=${value}`)).toEqual([
      'entry add userID=jjackson',
      'attribute add mail=a',
      'group add groups=g',
      'attribute replace mail=b',
      'group add groups=h',
      'group delete groups=g',
      'entry delete userID=jjackson',
    ])
  })
})

describe('closing', () => {
  test('waits for running calls, and refuses new ones', async () => {
    const store = new MemoryTarget()
    const gate = Promise.withResolvers<void>()
    store.before = () => gate.promise
    const { run, workflows } = await startWorkflows({ workflows: { w: [provision()] }, targets: { store } })
    const running = run('w')
    let closed = false
    const closing = Promise.resolve(workflows.close?.()).then(() => {
      closed = true
    })
    await expect(run('w')).rejects.toMatchObject({ code: 'SHUTTING_DOWN' })
    expect(closed).toBe(false)
    gate.resolve()
    await running
    await closing
    expect(store.stored('jjackson')).toBeDefined()
  })
})
