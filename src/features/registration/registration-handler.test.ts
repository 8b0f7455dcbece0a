import { describe, expect, onTestFinished, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { entryIdentity } from '#identity/identity.ts'
import type { ClusterApi } from '#sdk/target/kubernetes-cluster.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import { MemoryRegistrations } from '#testing/workflows/memory-registrations.ts'
import register from './register.ts'

const form = {
  'frontPage.title': 'New namespace',
  'frontPage.text': 'Request one',
  homeURL: '/',
  logoutURL: '/logout',
  uidAttributeName: 'uid',
  workflowName: '',
  submitLoggedInUser: 'true',
  useCallWorkflowClass: 'true',
  attributeNames: ['cluster', 'nameSpace'],
  'cluster.displayName': 'Cluster',
  'cluster.required': 'false',
  'nameSpace.displayName': 'Namespace',
}

const subject = {
  dn: Dn.parse('uid=ann,o=Tremolo'),
  identity: entryIdentity('test', 'ann'),
  uid: 'ann',
  attributes: Attributes.from({ uid: ['ann'], sub: ['ann'] }),
  level: 20,
  chain: 'login',
}

/** Has the namespace "taken". */
const cluster = Object.assign(new MemoryTarget(), {
  objects: {
    get: async (_: unknown, name: string) => (name === 'taken' ? {} : undefined),
  } as unknown as ClusterApi,
})

function parse(className: string, callWorkflowInit: readonly string[]) {
  const issues = noIssues()
  const params = { ...form, callWorkflowClassName: `com.tremolosecurity.scalejs.${className}`, callWorkflowInit }
  const prepared = register.prepare(fakeParams(params), issues, fakeParseContext())
  return { prepared, issues: issueTexts(issues.list) }
}

async function open(className: string, callWorkflowInit: readonly string[]) {
  const { prepared, issues } = parse(className, callWorkflowInit)
  expect(issues).toEqual([])
  const registrations = new MemoryRegistrations()
  const targets = { k8s: cluster, people: new MemoryTarget() }
  const filter = await prepared.create(fakeModuleHost({ registrations, targets }))
  onTestFinished(() => filter.close?.())
  const post = async (attributes: Record<string, string>) => {
    const request = fakeRequest({
      url: 'https://portal.test/register/submit',
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ attributes, reason: 'a project' }),
    })
    const exchange = { request, application: 'app', mount: '/register', pathInfo: '/submit', subject }
    const { status, body } = await filter.handle(exchange, async () => ({ status: 404, headers: {} }))
    return { status, body: JSON.parse(String(body)) }
  }
  return { post, calls: registrations.calls }
}

describe('K8sProjectCheck', () => {
  const settings = ['workflowName=new-namespace', 'targetName=k8s', 'projectAttributeName=nameSpace']

  test('starts its workflow about the caller, with the namespace and the cluster', async () => {
    const { post, calls } = await open('K8sProjectCheck', settings)
    expect(await post({ nameSpace: 'blue' })).toMatchObject({ status: 200 })
    const params = { namespace: 'blue', cluster: 'k8s', 'fully-qualified-namespace': 'k8s.blue' }
    expect(calls).toMatchObject([
      { head: { workflow: 'new-namespace', requester: 'ann', reason: 'a project' }, params },
    ])
    expect(calls[0]?.user.attributes.toObject()).toMatchObject({ uid: ['ann'], nameSpace: ['blue'] })
  })

  test('refuses a namespace that exists, and a target that is not a cluster', async () => {
    const { post, calls } = await open('K8sProjectCheck', settings)
    const taken = { status: 500, body: { errors: ['Namespace name already exists'] } }
    expect(await post({ nameSpace: 'taken' })).toEqual(taken)
    for (const name of ['people', 'nowhere']) {
      const answer = await post({ cluster: name, nameSpace: 'blue' })
      expect(answer).toEqual({ status: 500, body: { errors: [`There is no cluster "${name}"`] } })
    }
    expect(calls).toEqual([])
  })

  test('accepts an existing namespace if it need not be new', async () => {
    const { post, calls } = await open('K8sProjectCheck', [...settings, 'checkIfExists=false'])
    expect((await post({ nameSpace: 'taken' })).status).toBe(200)
    expect(calls).toHaveLength(1)
  })

  test('needs its settings', () => {
    expect(parse('K8sProjectCheck', ['targetName=k8s', 'no setting']).issues).toEqual([
      expect.stringContaining('a setting is written "name=value"'),
      expect.stringContaining('parameter "workflowName" is required'),
      expect.stringContaining('parameter "projectAttributeName" is required'),
    ])
  })
})

describe('JavaScriptRegister', () => {
  const script = `javaScript=
    function init(config) {
      globals.put("workflow", config.getCustomSubmissionConfig().get("flow").getValues().get(0));
    }
    function createTremoloUser(newUser, errors, userData) {
      var name = newUser.getAttributes().get("nameSpace");
      if (name == "bad") { errors.add("Not this one"); return ""; }
      newUser.getAttributes().put("owner", userData.getAttribs().get("sub").getValues().get(0));
      if (name == "other") newUser.getAttributes().put("uid", "someone");
      globals.put("seen", name);
      return globals.get("workflow");
    }
    function setWorkflowParameters(wfParameters, newUser, userData) {
      wfParameters.put("namespace", globals.get("seen"));
      wfParameters.put("why", newUser.getReason());
      wfParameters.put("size", 3);
    }`

  test('chooses the workflow, its parameters and further attributes', async () => {
    const { post, calls } = await open('register.registrators.JavaScriptRegister', ['flow=new-namespace', script])
    const answers = await Promise.all(['a', 'b', 'c'].map((nameSpace) => post({ nameSpace })))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(calls.map(({ head: { workflow: name }, params }) => [name, params])).toEqual(
      ['a', 'b', 'c'].map((namespace) => ['new-namespace', { namespace, why: 'a project', size: '3' }]),
    )
    expect(calls[0]?.user.attributes.toObject()).toEqual({ uid: ['ann'], nameSpace: ['a'], owner: ['ann'] })
  })

  test('shows its errors to the user and starts nothing', async () => {
    const { post, calls } = await open('register.registrators.JavaScriptRegister', ['flow=new-namespace', script])
    expect(await post({ nameSpace: 'bad' })).toEqual({ status: 500, body: { errors: ['Not this one'] } })
    expect(calls).toEqual([])
  })

  test('cannot change the subject', async () => {
    const { post, calls } = await open('register.registrators.JavaScriptRegister', ['flow=new-namespace', script])
    await post({ nameSpace: 'other' })
    expect(calls[0]?.user).toMatchObject({ userID: 'ann' })
    expect(calls[0]?.user.attributes.values('uid')).toEqual(['ann'])
  })

  test('a script that uses what is not served is refused', () => {
    const wrong = 'javaScript=function createTremoloUser() { Java.type("java.io.File") }'
    expect(parse('register.registrators.JavaScriptRegister', [wrong]).issues).toEqual([
      expect.stringContaining('java.io.File'),
    ])
  })
})
