import { afterEach, describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import type { InsertEntry } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import type { Job } from '#sdk/job/job.ts'
import type { CallKey, RunStarter, WorkflowCall } from '#sdk/workflow/workflow.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues } from '#testing/modules/fake-parse.ts'
import { fakeJobHost, jobContext } from '#testing/workflows/fake-job-host.ts'
import javaScriptJob from './javascript-job.ts'

const opened: Job[] = []

afterEach(async () => {
  await Promise.all(opened.splice(0).map((job) => job.close?.()))
})

/** Stores runs like the engine: one per key. */
function rememberedRuns() {
  const started: WorkflowCall[] = []
  const keys = new Set<string>()
  const start: RunStarter['start'] = async (call, key?: CallKey) => {
    const text = JSON.stringify([key?.scope, key?.key])
    const kind = keys.has(text) ? 'repeated' : 'started'
    if (kind === 'started') started.push(call)
    keys.add(text)
    return { kind, result: { id: text, status: 'accepted', changes: 0 } }
  }
  return { started, runs: { start } }
}

async function open(javaScript: string, runs?: RunStarter, entries: readonly InsertEntry[] = []): Promise<Job> {
  const issues = noIssues()
  const params = fakeParams({ javaScript, color: 'red', allowedWorkflow: ['offboard', 'sync'] })
  const context = fakeParseContext()
  const prepared = javaScriptJob.prepare(params, issues, context)
  expect(issueTexts(issues.list)).toEqual([])
  expect(context.references.map(({ kind, name }) => `${kind} ${name}`)).toEqual(['workflow offboard', 'workflow sync'])
  const job = await prepared.create(fakeJobHost({ ...(runs && { runs }), entries }))
  opened.push(job)
  return job
}

test('gets its parameters and due time, and may answer nothing', async () => {
  const job = await open(`
    function init(job, params) { state.color = params.color[0] }
    function execute(job, context) {
      const reported = [job.name, context.due, context.attempt, context.params.color[0], state.color].join(' ')
      if (reported !== 'nightly 2025-03-10T02:00:00.000Z 2 red red') throw new Error(reported)
      context.log('it is night')
    }`)
  expect(await job.run(jobContext({ attempt: 2 }))).toEqual({ workflows: 0 })
})

test('starts each workflow once for a due time, even if it answers differently when run again', async () => {
  const { started, runs } = rememberedRuns()
  const job = await open(
    `function execute(job, { attempt }) {
       const ada = { name: 'offboard', userID: 'ada', attributes: { mail: ['a@x.test'] }, reason: 'left', params: { when: 'now' } }
       const all = [ada, { name: 'sync', userID: 'bob', groups: ['a'] }, { name: 'sync', userID: 'bob' }]
       return { workflows: attempt === 1 ? all.slice(0, 2) : all.reverse() }
     }`,
    runs,
  )
  expect(await job.run(jobContext())).toEqual({ workflows: 2 })
  expect(await job.run(jobContext({ attempt: 2 }))).toEqual({ workflows: 1 })
  expect(started.map(({ head: { workflow: name }, user }) => `${name} ${user.userID}`)).toEqual([
    'offboard ada',
    'sync bob',
    'sync bob',
  ])
  expect(started[0]).toMatchObject({
    head: { requester: 'nightly', reason: 'left' },
    asynchronous: true,
    keepGroups: true,
    params: { when: 'now' },
  })
  expect(started[1]).toMatchObject({ keepGroups: false })
  expect(await job.run(jobContext({ due: new Date('2025-03-11T02:00:00Z') }))).toEqual({ workflows: 2 })
})

describe('starts nothing at all', () => {
  const good = "{ name: 'sync', userID: 'ada' }"
  test.each([
    ['for a workflow it may not start', `{ workflows: [${good}, { name: 'other', userID: 'ada' }] }`],
    [
      'for a key of the engine',
      `{ workflows: [${good}, { name: 'sync', userID: 'a', params: { APPROVAL_ID: '1' } }] }`,
    ],
    ['without a login', `{ workflows: [${good}, { name: 'sync' }] }`],
    ['for workflows that are not a list', `{ workflows: ${good} }`],
    ['for another answer', `'sync'`],
    ['for too many', `{ workflows: Array(1001).fill(${good}) }`],
  ])('%s', async (_, answer) => {
    const { started, runs } = rememberedRuns()
    const job = await open(`function execute() { return ${answer} }`, runs)
    await expect(job.run(jobContext())).rejects.toMatchObject({ code: 'WORKFLOW_FAILED' })
    expect(started).toEqual([])
  })
})

test('code that fails, or has nothing to execute', async () => {
  const job = await open('function execute() { throw new Error("no luck") }')
  await expect(job.run(jobContext())).rejects.toThrow(/no luck/)
  await expect(open('function init() {}')).rejects.toThrow(/no function execute/)
})

describe('a script of OpenUnison', () => {
  const call = `
    var GlobalEntries = Java.type("com.tremolosecurity.server.GlobalEntries");
    var TremoloUser = Java.type("com.tremolosecurity.provisioning.service.util.TremoloUser");
    var WFCall = Java.type("com.tremolosecurity.provisioning.service.util.WFCall");
    var ProvisioningParams = Java.type("com.tremolosecurity.provisioning.core.ProvisioningParams");
    function begin(name, login) {
      var user = new TremoloUser(); user.setUid(login);
      var call = new WFCall(); call.setUser(user); call.setReason("expired"); call.setRequestor("system");
      call.getRequestParams().put(ProvisioningParams.UNISON_EXEC_TYPE, ProvisioningParams.UNISON_EXEC_ASYNC);
      call.getRequestParams().put("group", "admins");
      GlobalEntries.getGlobalEntries().getConfigManager().getProvisioningEngine().getWorkFlow(name).executeWorkflow(call);
    }`

  test('reads parameters, targets and the directory, and starts workflows that it names, in the name of the job', async () => {
    const { started, runs } = rememberedRuns()
    const entry = { dn: Dn.parse('uid=ada,o=Tremolo'), attributes: Attributes.from({ uid: ['ada'] }) }
    const body = `${call}
      function execute(manager, context) {
        var found = manager.getMyVD().search("o=Tremolo", 2, "(uid=ada)", new (Java.type("java.util.ArrayList"))());
        found.hasMore();
        if (context.getJobDetail().getJobDataMap().getString("color") != "red") throw new Error("another color");
        begin("revoke", found.next().getAttribute("uid").getStringValue());
      }`
    const job = await open(body, runs, [entry])
    expect(await job.run(jobContext())).toEqual({ workflows: 1 })
    expect(await job.run(jobContext({ attempt: 2 }))).toEqual({ workflows: 0 })
    expect(started).toMatchObject([
      {
        head: { workflow: 'revoke', requester: 'nightly', reason: 'expired' },
        asynchronous: true,
        keepGroups: true,
        user: { userID: 'ada' },
        params: { group: 'admins' },
      },
    ])
  })

  test('starts nothing if it fails later, or names a workflow in no plain text', async () => {
    const { started, runs } = rememberedRuns()
    const fails = await open(`${call} function execute() { begin("revoke", "ada"); throw new Error("no luck") }`, runs)
    await expect(fails.run(jobContext())).rejects.toThrow(/no luck/)
    const other = await open(`${call} function execute() { begin("rev" + "oke", "ada") }`, runs)
    await expect(other.run(jobContext())).rejects.toThrow(/may not start "revoke"/)
    expect(started).toEqual([])
  })

  test('leaves changes to workflows', () => {
    const issues = noIssues()
    const script = `function execute(manager) {
      manager.getProvisioningEngine().getTarget("k8s").getProvider().callWSDelete("", null, "/api/v1/namespaces/x") }`
    javaScriptJob.prepare(fakeParams({ javaScript: script }), issues, fakeParseContext())
    expect(issueTexts(issues.list)).toEqual([
      expect.stringContaining('callWSDelete() is served in workflow tasks only; start a workflow that does it'),
    ])
  })
})
