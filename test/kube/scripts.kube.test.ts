import { expect, test } from 'vitest'
import kubernetes from '#adapters/targets/kubernetes/kubernetes.ts'
import javaScriptTask from '#adapters/workflow-tasks/javascript-task/javascript-task.ts'
import { Attributes } from '#identity/attributes.ts'
import { silentLogger } from '#kernel/logger.ts'
import type { TargetChange } from '#sdk/target/target.ts'
import type { TaskContext } from '#sdk/workflow/workflow-task.ts'
import { onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues } from '#testing/modules/fake-parse.ts'
import { noEffects } from '#testing/workflows/no-effects.ts'
import { runHead } from '#testing/workflows/run-head.ts'

const script = `
  GlobalEntries = Java.type("com.tremolosecurity.server.GlobalEntries");
  K8sUtils = Java.type("com.tremolosecurity.k8s.util.K8sUtils");
  function init(task, params) {}
  function reInit(task) {}
  function doTask(user, request) {
    var ns = request.get("nameSpace");
    request.put("read", K8sUtils.loadConfigMap("k8s", ns, "settings").get("color") + K8sUtils.loadSecret("k8s", ns, "login").get("key"));
    var k8s = GlobalEntries.getGlobalEntries().getConfigManager().getProvisioningEngine().getTarget("k8s").getProvider();
    var con = k8s.createClient(), token = k8s.getAuthToken();
    try {
      var maps = "/api/v1/namespaces/" + ns + "/configmaps";
      request.put("found", k8s.isObjectExistsByName(token, con, maps, "made"));
      k8s.callWSPost(token, con, maps, JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "made" } }));
      k8s.callWSPatchJson(token, con, maps + "/made", JSON.stringify({ data: { by: user.getUserID() } }));
      request.put("made", JSON.parse(k8s.callWS(token, con, maps + "/made")).data.by);
      k8s.callWSDelete(token, con, maps + "/settings");
      request.put("missing", JSON.parse(k8s.callWS(token, con, maps + "/settings")).reason);
      try { k8s.callWSPost(token, con, maps, "{}") } catch (e) { request.put("refused", e.getMessage()) }
    } finally {
      con.getHttp().close();
      con.getBcm().close();
    }
    return true;
  }`

onKubernetes('a script of OpenUnison', (cluster) => {
  test('reads and changes objects of a cluster, with an audit entry for each change', async () => {
    const namespace = await cluster.namespace()
    const core = `/api/v1/namespaces/${namespace}`
    await cluster.must('POST', `${core}/configmaps`, { metadata: { name: 'settings' }, data: { color: 'red' } })
    await cluster.must('POST', `${core}/secrets`, { metadata: { name: 'login' }, stringData: { key: 'grün' } })
    const { url, adminToken, ca } = cluster.connection
    const params = fakeParams({ url, token: adminToken, certificate: ca })
    const k8s = await kubernetes.prepare(params, noIssues(), fakeParseContext()).create(fakeModuleHost())
    const issues = noIssues()
    const prepared = javaScriptTask.prepare(fakeParams({ javaScript: script }), issues, fakeParseContext())
    expect(issueTexts(issues.list)).toEqual([])
    const task = await prepared.create(fakeModuleHost({ targets: { k8s } }))
    const changes: TargetChange[] = []
    const workflow = { id: '1', name: 'onboard' }
    const run = runHead({ id: '1', workflow: 'onboard', requester: 'boss' })
    const context: TaskContext = {
      user: { userID: 'ada', attributes: new Attributes(), groups: [], keepGroups: false },
      request: new Map([['nameSpace', namespace]]),
      run,
      log: silentLogger,
      effects: noEffects,
      forTarget: () => ({
        workflow,
        idempotencyKey: '1/1',
        requestor: 'boss',
        params: {},
        log: silentLogger,
        audit: (change) => void changes.push(change),
      }),
    }
    try {
      await task.run(context)
    } finally {
      await task.close?.()
      await k8s.close?.()
    }
    expect(Object.fromEntries(context.request)).toEqual({
      nameSpace: namespace,
      read: 'redgrün',
      found: false,
      made: 'ada',
      missing: 'NotFound',
      refused: expect.stringMatching(/Unexpected result calling .*configmaps' - 422/),
    })
    expect(changes.map(({ action, value }) => [action, value])).toEqual([
      ['add', `${core}/configmaps`],
      ['replace', `${core}/configmaps/made`],
      ['delete', `${core}/configmaps/settings`],
    ])
  })
})
