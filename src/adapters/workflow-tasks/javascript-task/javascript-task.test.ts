import { createSecretKey } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import database from '#adapters/targets/database/database.ts'
import { Attributes } from '#identity/attributes.ts'
import { silentLogger } from '#kernel/logger.ts'
import { SecretBox } from '#keys/secret-box.ts'
import type { ClusterCall } from '#sdk/target/kubernetes-cluster.ts'
import type { Target, TargetChange } from '#sdk/target/target.ts'
import type { TaskContext, WorkflowTask, WorkflowUser } from '#sdk/workflow/workflow-task.ts'
import { sealedTexts } from '#server/composition/hosts.ts'
import { type FakeHostOptions, fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues } from '#testing/modules/fake-parse.ts'
import { noEffects } from '#testing/workflows/no-effects.ts'
import { runHead } from '#testing/workflows/run-head.ts'
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
  const planned: TargetChange[] = []
  const context: TaskContext = {
    user: {
      userID: 'ada',
      attributes: Attributes.from({ mail: ['a@x.test'] }),
      groups: ['a'],
      keepGroups: false,
      ...user,
    },
    request: new Map(request),
    run: runHead({ id: '1', workflow: 'onboard', requester: 'boss' }),
    log: silentLogger,
    effects: noEffects,
    forTarget: (name) => ({
      workflow: { id: '1', name: 'onboard' },
      idempotencyKey: '1/1',
      requestor: 'boss',
      params: {},
      log: silentLogger,
      planChanges: async (wanted) => void planned.push(...wanted),
      audit: (change) => void changes.push([name, change]),
    }),
  }
  return { context, changes, planned }
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
    ['the end of the access', "request['accessEnds'] = '2030-01-01'; return true"],
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

describe('a script of OpenUnison', () => {
  const doing = (body: string): string => `
    GlobalEntries = Java.type("com.tremolosecurity.server.GlobalEntries");
    K8sUtils = Java.type("com.tremolosecurity.k8s.util.K8sUtils");
    Attribute = Java.type("com.tremolosecurity.saml.Attribute");
    HashMap = Java.type("java.util.HashMap");
    function init(task, params) { state.put("workflow", task.getWorkflow()); state.put("task", task) }
    function reInit(task) { init(task, null) }
    function doTask(user, request) {
      var workflow = state.get("workflow");
      var engine = GlobalEntries.getGlobalEntries().getConfigManager().getProvisioningEngine();
      ${body}
      return true;
    }`

  const secret = { kind: 'Secret', data: { key: Buffer.from('grün').toString('base64') } }

  function cluster() {
    const calls: ClusterCall[] = []
    const call = async (given: ClusterCall) => {
      calls.push(given)
      const body = given.path.includes('/secrets/') ? secret : { kind: 'ConfigMap', data: { mappings: '{}' } }
      return given.path.endsWith('/none') ? { status: 404, body: '{}' } : { status: 200, body: JSON.stringify(body) }
    }
    return { calls, target: { objects: {}, calls: { address: 'https://api.test', call } } as unknown as Target }
  }

  async function run(
    body: string,
    targets: Record<string, Target> = {},
    params: Record<string, string> = {},
    more: Partial<TaskContext> = {},
    host: FakeHostOptions = {},
  ) {
    const issues = noIssues()
    const given = fakeParams({ javaScript: doing(body), ...params })
    const prepared = javaScriptTask.prepare(given, issues, fakeParseContext())
    expect(issueTexts(issues.list)).toEqual([])
    const task = await prepared.create({ ...fakeModuleHost({ targets, ...host }), name: 'onboard' })
    opened.push(task)
    const { context, changes, planned } = contextOf({ requestReason: 'because' }, [['cluster', 'k8s']])
    await task.run({ ...context, ...more })
    return { context, changes, planned }
  }

  describe('starts workflows', () => {
    const starting = (name: string, more = '', type = 'UNISON_EXEC_ASYNC') => `
      TremoloUser = Java.type("com.tremolosecurity.provisioning.service.util.TremoloUser");
      WFCall = Java.type("com.tremolosecurity.provisioning.service.util.WFCall");
      ProvisioningParams = Java.type("com.tremolosecurity.provisioning.core.ProvisioningParams");
      var nuser = new TremoloUser();
      nuser.setUid("bob");
      nuser.getAttributes().add(new Attribute("sub", "bob"));
      call = new WFCall();
      call.setReason("why"); call.setUidAttributeName("sub"); call.setUser(nuser);
      call.setRequestor(workflow.getRequester().getUserID());
      call.getRequestParams().put(ProvisioningParams.UNISON_EXEC_TYPE, ProvisioningParams.${type});
      call.getRequestParams().put("cluster", request.get("cluster"));
      ${more}
      engine.getWorkFlow(${name}).executeWorkflow(call);`

    async function started(body: string, params: Record<string, string> = {}, more: Partial<TaskContext> = {}) {
      const calls: unknown[] = []
      const effects = { ...noEffects, start: (call: unknown) => void calls.push(call) }
      await run(body, {}, params, { effects, ...more })
      return calls
    }

    test('by a plain name, or one of allowedWorkflow, for the same requester', async () => {
      const expected = {
        head: { workflow: 'remove-access', requester: 'boss', reason: 'why' },
        asynchronous: true,
        user: { userID: 'bob', groups: [] },
        keepGroups: true,
        params: { cluster: 'k8s' },
      }
      expect(await started(starting('"remove-access"'))).toMatchObject([expected])
      const dynamic = starting('"remove-" + "access"')
      expect(await started(dynamic, { allowedWorkflow: 'remove-access' })).toMatchObject([expected])
    })

    test.each<[string, RegExp, Record<string, string>?]>([
      [starting('"a"', 'call.setRequestor("root")'), /requestor must be/],
      [starting('"a"', 'call.getRequestParams().put("APPROVAL_ID", "1")'), /belongs to the engine/],
      [starting('"a"', 'nuser.setUid("")'), /no login/],
      [starting('"a"', '', 'UNISON_EXEC_SYNC'), /UNISON_EXEC_ASYNC/],
      [
        starting('"a"', 'engine.getWorkFlow("b" + "").executeWorkflow(call);'),
        /may not start "b"/,
        { allowedWorkflow: 'c' },
      ],
      ['workflow.executeWorkflow(null)', /runs already/],
    ])('nothing else: %#', async (body, reason, params = {}) => {
      await expect(started(body, params)).rejects.toThrow(reason)
    })

    test('a caller who may act for one user starts none for another', async () => {
      const bound = { attributes: [] }
      await expect(started(starting('"a"'), {}, { bound })).rejects.toThrow(/own user only/)
      expect(await started(starting('"a"', 'nuser.setUid("ADA")'), {}, { bound })).toHaveLength(1)
    })

    test('check warns of a name that is not known beforehand', () => {
      const issues = noIssues()
      const script = doing('engine.getWorkFlow(request.get("name"))')
      javaScriptTask.prepare(fakeParams({ javaScript: script }), issues, fakeParseContext())
      expect(issueTexts(issues.list)).toEqual([expect.stringMatching(/^warning .*allowedWorkflow/)])
    })
  })

  test('knows the run whenever it got the workflow', async () => {
    const { context } = await run(`
      request.put("facts", workflow.getId() + workflow.getName() + workflow.getRequester().getUserID() +
        workflow.getUser().getUserID() + workflow.getUser().getRequestReason());
      request.put("WORKFLOW", state.get("task").getWorkflow());`)
    expect(Object.fromEntries(context.request)).toEqual({ cluster: 'k8s', facts: '1onboardbossadabecause' })
  })

  test('reads ConfigMaps and Secrets', async () => {
    const { calls, target } = cluster()
    const { context } = await run(
      `request.put("read", [K8sUtils.loadConfigMap("k8s", "ns", "a").get("mappings"), K8sUtils.loadSecret("k8s", "ns", "b").get("key")]);
       try { K8sUtils.loadSecret("k8s", "ns", "../x") } catch (e) { request.put("refused", e.getMessage()) }
       try { K8sUtils.loadSecret("k8s", "ns", "none") } catch (e) { request.put("missing", e.getMessage()) }`,
      { k8s: target },
    )
    expect(context.request.get('read')).toEqual(['{}', 'grün'])
    expect(context.request.get('refused')).toContain('is not the name')
    expect(context.request.get('missing')).toContain('404')
    expect(calls.map(({ path }) => path)).toEqual([
      '/api/v1/namespaces/ns/configmaps/a',
      '/api/v1/namespaces/ns/secrets/b',
      '/api/v1/namespaces/ns/secrets/none',
    ])
  })

  test('reads the mappings of GroupMetaData objects', async () => {
    const groupMappings = [
      { group: 'admins', external: 'CN=Admins,DC=x' },
      { group: 'auditors', external: 'cn=admins, dc=x' },
      { group: 'staff', external: 'acme/Staff' },
    ]
    const body = `
      Watch = Java.type("com.tremolosecurity.proxy.filters.SetupGroupMetadataWatch");
      request.put("dn", Watch.getK8s("cn=ADMINS,dc=x").toArray());
      request.put("name", Watch.getK8s("ACME/staff").get(0));
      request.put("none", [Watch.getK8s("acme") === null, Watch.getExt("x") === null]);
      request.put("ext", Watch.getExt("Auditors"));`
    const { context } = await run(body, {}, {}, {}, { groupMappings })
    expect(Object.fromEntries(context.request)).toEqual({
      cluster: 'k8s',
      dn: ['admins', 'auditors'],
      name: 'staff',
      none: [true, true],
      ext: 'cn=admins, dc=x',
    })
  })

  test('decrypts what scripts encrypted, and no other secret', async () => {
    const key = { id: 'a', key: createSecretKey(Buffer.alloc(32)) }
    const box = (what: string) => new SecretBox(async () => [key], { what, damaged: 'BAD_REQUEST' })
    const host = { scriptSecrets: sealedTexts(box('script')) }
    const crypto = `var Gson = Java.type("com.google.gson.Gson");
      var EncryptedMessage = Java.type("com.tremolosecurity.provisioning.util.EncryptedMessage");
      var open = (json) => engine.decryptObject(new Gson().fromJson(json, EncryptedMessage.class));`
    const { context } = await run(
      `${crypto} var text = new Gson().toJson(engine.encryptObject('{"incident":"1"}'));
       request.put("stored", text); request.put("read", JSON.parse(open(text)).incident);`,
      {},
      {},
      {},
      host,
    )
    expect(context.request.get('read')).toBe('1')
    expect(context.request.get('stored')).toMatch(/^\{"msg":"g1\.a\.[\w-]+\.[\w-]+"\}$/)
    const other = JSON.stringify({ msg: await box('login').seal({ text: 'x' }, 'text') })
    const refused: [string, RegExp][] = [
      [`open(${JSON.stringify(other)})`, /the secrets of script text are damaged/],
      ['open("{}")', /not a message that the gateway encrypted/],
      ['engine.decryptObject("g1")', /an EncryptedMessage is needed/],
      ['engine.encryptObject("x".repeat(100001))', /at most 100000 characters/],
      ['new Gson().fromJson("{}", HashMap)', /use JSON.parse/],
    ]
    for (const [body, reason] of refused) await expect(run(crypto + body, {}, {}, {}, host)).rejects.toThrow(reason)
  })

  test('changes a cluster, and every change is audited', async () => {
    const { calls, target } = cluster()
    const { changes, planned } = await run(
      `var k8s = engine.getTarget("k8s").getProvider(), token = k8s.getAuthToken(), con = k8s.createClient();
       k8s.callWSPost(token, con, "/api/v1/namespaces?x=1", '{"kind":"Namespace"}');
       k8s.callWSPatchJson(token, con, "/api/v1/namespaces/a", "{}");
       k8s.callWSDelete(token, con, "/api/v1/namespaces/none");
       k8s.callWSDelete(token, con, "/api/v1/namespaces/a");
       if (token.length > 30) throw new Error("a real token");`,
      { k8s: target },
    )
    expect(calls.map(({ method, contentType }) => [method, contentType])).toEqual([
      ['POST', 'application/json'],
      ['PATCH', 'application/merge-patch+json'],
      ['DELETE', undefined],
      ['DELETE', undefined],
    ])
    const entry = { subject: 'entry', attribute: 'object' }
    expect(changes).toEqual([
      ['k8s', { ...entry, action: 'add', value: '/api/v1/namespaces' }],
      ['k8s', { ...entry, action: 'replace', value: '/api/v1/namespaces/a' }],
      ['k8s', { ...entry, action: 'delete', value: '/api/v1/namespaces/a' }],
    ])
    // Written down before each call, so that a killed gateway loses none.
    expect(planned.map(({ action, value }) => `${action} ${value}`)).toEqual([
      'add /api/v1/namespaces',
      'replace /api/v1/namespaces/a',
      'delete /api/v1/namespaces/none',
      'delete /api/v1/namespaces/a',
    ])
  })

  test('uses the users and groups of a target', async () => {
    const store = await database.prepare(fakeParams({}), noIssues(), fakeParseContext()).create(fakeModuleHost())
    opened.push(store as never)
    const { context, planned } = await run(
      `var db = engine.getTarget("db").getProvider();
       var before = db.isGroupExists("crew", user, request);
       var extra = new HashMap(); extra.put("unison.group.create.sql", "INSERT"); extra.put("description", "The crew");
       db.addGroup("crew", extra, user, request);
       request.put("seen", [before, db.isGroupExists("crew", user, request), db.findUser("nobody", [], request)]);
       db.addGroup("crew", extra, user, request); db.deleteGroup("crew", user, request); db.deleteGroup("crew", user, request);`,
      { db: store },
    )
    expect(context.request.get('seen')).toEqual([false, true, null])
    expect(planned.map(({ action, attribute, value }) => [action, attribute, value])).toEqual([
      ['add', 'name', 'crew'],
      ['add', 'description', 'The crew'],
      ['delete', 'name', 'crew'],
    ])
  })

  test.each([
    ['engine.getTarget("other").getProvider().getUrl()', /no target other/],
    ['engine.getTarget("db").getProvider().callWS("", null, "/x")', /not a Kubernetes cluster/],
    ['for (;;) engine.getTarget("k8s").getProvider().callWS("", null, "/x")', /more than 1000 questions/],
  ])('fails if it reaches for more: %s', async (body, reason) => {
    await expect(run(body, { db: {} as Target, k8s: cluster().target })).rejects.toThrow(reason)
  })
})
