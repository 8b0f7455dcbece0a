import { afterEach, describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { silentLogger } from '#kernel/logger.ts'
import type { TargetChange } from '#sdk/target/target.ts'
import type { TaskContext, WorkflowTask, WorkflowUser } from '#sdk/workflow/workflow-task.ts'
import { fakeModuleHost } from '#testing/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues } from '#testing/fake-parse.ts'
import { noEffects } from '#testing/no-effects.ts'
import javaScriptTask from './javascript-task.ts'

const opened: WorkflowTask[] = []

afterEach(async () => {
  await Promise.all(opened.splice(0).map((task) => task.close?.()))
})

async function open(javaScript: string, params: Record<string, string> = {}): Promise<WorkflowTask> {
  const issues = noIssues()
  const prepared = javaScriptTask.prepare(fakeParams({ javaScript, ...params }), issues, fakeParseContext())
  expect(issueTexts(issues.list)).toEqual([])
  expect(prepared.flow.opaque).toBe(true)
  const task = await prepared.create({ ...fakeModuleHost(), name: 'onboard' })
  opened.push(task)
  return task
}

function contextOf(user: Partial<WorkflowUser> = {}, request: [string, unknown][] = []) {
  const changes: [string, TargetChange][] = []
  const context: TaskContext = {
    user: {
      userID: 'ada',
      attributes: Attributes.from({ mail: ['a@x.test'] }),
      groups: ['a'],
      keepGroups: false,
      ...user,
    },
    request: new Map(request),
    workflow: { id: '1', name: 'onboard' },
    requestor: 'boss',
    who: {},
    log: silentLogger,
    effects: noEffects,
    forTarget: (name) => ({
      workflow: { id: '1', name: 'onboard' },
      idempotencyKey: '1/1',
      requestor: 'boss',
      params: {},
      log: silentLogger,
      audit: (change) => void changes.push([name, change]),
    }),
  }
  return { context, changes }
}

test('true continues and false stops', async () => {
  const task = await open('function doTask(user, request) { return request.go === "yes" }')
  expect(await task.run(contextOf({}, [['go', 'yes']]).context)).toEqual({ kind: 'next' })
  expect(await task.run(contextOf({}, [['go', 'no']]).context)).toEqual({ kind: 'stop' })
})

test("the function's changes are in the user and the request afterwards", async () => {
  const task = await open(`
    async function doTask(user, request, context) {
      user.userID = user.userID.toUpperCase()
      user.attributes.title = [request.title, context.requestor, context.workflow.name]
      delete user.attributes.mail
      user.groups.push('b')
      delete request.title
      request.made = { by: ['task'] }
      context.audit({ action: 'add', attribute: 'x', value: '1' })
      return true
    }`)
  const { context, changes } = contextOf({}, [
    ['title', 'Dr'],
    ['kept', () => 'not data'],
    ['UNISON.EXEC.TYPE', 'UNISON.EXEC.SYNC'],
  ])
  await task.run(context)
  expect(context.user.userID).toBe('ADA')
  expect(context.user.attributes.toObject()).toEqual({ title: ['Dr', 'boss', 'onboard'] })
  expect(context.user.groups).toEqual(['a', 'b'])
  expect([...context.request.keys()]).toEqual(['kept', 'UNISON.EXEC.TYPE', 'made'])
  expect(context.request.get('made')).toEqual({ by: ['task'] })
  expect(changes).toEqual([
    ['tasks.JavaScriptTask', { subject: 'attribute', action: 'add', attribute: 'x', value: '1' }],
  ])
})

test('unknown memberships stay unknown unless the function sets some', async () => {
  const task = await open('function doTask(user, request) { if (request.set) user.groups = ["z"]; return true }')
  const unknown = contextOf({ keepGroups: true, groups: [] })
  await task.run(unknown.context)
  expect(unknown.context.user.keepGroups).toBe(true)
  const set = contextOf({ keepGroups: true, groups: [] }, [['set', '1']])
  await task.run(set.context)
  expect(set.context.user).toMatchObject({ keepGroups: false, groups: ['z'] })
})

test('the password is hidden', async () => {
  const task = await open(
    'function doTask(user, request, context) { user.attributes.seen = [JSON.stringify([user, request, context])]; return true }',
  )
  const { context } = contextOf({ password: 'correct horse' })
  await task.run(context)
  expect(context.user.attributes.first('seen')).not.toContain('horse')
  expect(context.user.password).toBe('correct horse')
})

describe('invalid changes', () => {
  test.each([
    ['a key of the engine', "request['APPROVAL_RESULT'] = true; return true"],
    ['another key of the engine', "request['UNISON.EXEC.TYPE'] = 'UNISON.EXEC.ASYNC'; return true"],
    ['a removed key of the engine', "delete request['WORKFLOW_ID']; return true"],
    ['a reserved key', `Object.defineProperty(request, '__proto__', { value: 1, enumerable: true }); return true`],
    ['no answer', 'return'],
    ['a wrong answer', 'return "true"'],
    ['a user without a login', 'user.userID = ""; return true'],
    ['attributes that are not texts', 'user.attributes.n = [1]; return true'],
    ['groups that are not a list', 'user.groups = null; return true'],
    ['an attribute with a reserved name', "user.attributes['constructor'] = ['x']; return true"],
  ])('%s', async (_, body) => {
    const task = await open(`function doTask(user, request) { user.attributes.half = ['done']; ${body} }`)
    const { context } = contextOf({}, [['WORKFLOW_ID', '1']])
    await expect(task.run(context)).rejects.toMatchObject({ code: 'WORKFLOW_FAILED' })
    expect(context.user.attributes.has('half')).toBe(false)
    expect([...context.request]).toEqual([['WORKFLOW_ID', '1']])
  })

  test('a task that throws fails, and one without doTask is rejected', async () => {
    const task = await open('function doTask() { throw Object.assign(new Error("down"), { code: "unreachable" }) }')
    await expect(task.run(contextOf().context)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
    await expect(open('function init() {}')).rejects.toThrow(/no function doTask/)
    await expect(open('function init() { throw new Error("bad") } function doTask() {}')).rejects.toThrow(/bad/)
  })
})

test('init runs once per start, reInit after a restart, with the parameters', async () => {
  const task = await open(
    `function init(given, params) { state.log = ['init ' + given.name + ' ' + params.color[0] + ' ' + task.name] }
     function reInit(given) { state.log.push('reInit ' + given.name) }
     function doTask(user, request) { if (request.die) process.exit(1); user.attributes.log = state.log; return true }`,
    { color: 'red' },
  )
  const first = contextOf()
  await task.run(first.context)
  expect(first.context.user.attributes.values('log')).toEqual(['init onboard red onboard'])
  await expect(task.run(contextOf({}, [['die', '1']]).context)).rejects.toMatchObject({ code: 'TARGET_FAILED' })
  const again = contextOf()
  await task.run(again.context)
  expect(again.context.user.attributes.values('log')).toEqual(['init onboard red onboard', 'reInit onboard'])
})

describe('a legacy script', () => {
  test('changes a User and a Map, and both stay changed', async () => {
    const task = await open(
      `Attribute = Java.type("com.tremolosecurity.saml.Attribute");
      ProvisioningUtil = Java.type("com.tremolosecurity.provisioning.core.ProvisioningUtil");
      function init(task, params) { state.put("title", params.get("title").getValues().get(0)) }
      function reInit(task) {}
      function doTask(user, request) {
        user.getAttribs().remove("mail")
        user.getAttribs().put("title", new Attribute("title", state.get("title")))
        user.getGroups().add("b")
        user.setUserID(user.getUserID().toUpperCase())
        request.put("made", request.get("given").get(0) + request.get("WORKFLOW").getName())
        request.remove("given")
        task.getConfigManager().getProvisioningEngine().logAction("x", false, ProvisioningUtil.ActionType.Add, 0, null, "title", "t")
        return true
      }`,
      { title: 'Dr' },
    )
    const { context, changes } = contextOf({}, [
      ['given', ['one']],
      ['kept', { deep: [1] }],
    ])
    expect(await task.run(context)).toEqual({ kind: 'next' })
    expect(context.user).toMatchObject({ userID: 'ADA', groups: ['a', 'b'] })
    expect(context.user.attributes.toObject()).toEqual({ title: ['Dr'] })
    expect([...context.request]).toEqual([
      ['kept', { deep: [1] }],
      ['made', 'oneonboard'],
    ])
    expect(changes.map(([, change]) => change)).toEqual([
      { subject: 'attribute', action: 'add', attribute: 'title', value: 't' },
    ])
  })

  test('is recognized without the name of a Java type', async () => {
    const task = await open('function doTask(user, request) { request.put("id", user.getUserID()); return false }')
    const { context } = contextOf()
    expect(await task.run(context)).toEqual({ kind: 'stop' })
    expect([...context.request]).toEqual([['id', 'ada']])
  })

  test('cannot set keys of the engine, nor leave anything but a user', async () => {
    const engine = await open('function doTask(user, request) { request.put("WORKFLOW_ID", "7"); return true }')
    await expect(engine.run(contextOf().context)).rejects.toThrow(/belongs to the engine/)
    const nameless = await open('function doTask(user, request) { user.setUserID(null); return true }')
    await expect(nameless.run(contextOf().context)).rejects.toThrow(/userID/)
  })
})
