import { randomUUID } from 'node:crypto'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'

const group = 'openunison.tremolo.io'
/** The meaning of "within seconds" on a busy machine. */
const soon = 60_000

/** Maps the groups of the identity provider, in the form of OpenUnison's scripts. */
const script = `
  SetupGroupMetadataWatch = Java.type("com.tremolosecurity.proxy.filters.SetupGroupMetadataWatch");
  function init(task, params) {}
  function reInit(task) {}
  function doTask(user, request) {
    memberOf = user.getAttribs().get("memberOf");
    user.getGroups().clear();
    for (var i = 0; i < memberOf.getValues().size(); i++) {
      k8sGroup = SetupGroupMetadataWatch.getK8s(memberOf.getValues().get(i));
      if (k8sGroup != null) {
        for (var j = 0; j < k8sGroup.size(); j++) user.getGroups().add(k8sGroup.get(j));
      }
    }
    request.put("mapped", user.getGroups().toArray().join(" "));
    return true;
  }`

onKubernetes('GroupMetaData objects of a cluster', (cluster) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-group-metadata-'))
  const config = join(folder, 'config')
  let gateway: GatewayProcess
  let namespace = ''

  const create = (kind: string, name: string, spec: object) =>
    cluster.must('POST', `/apis/${group}/v1/namespaces/${namespace}/${kind.toLowerCase()}s`, {
      apiVersion: `${group}/v1`,
      kind,
      metadata: { name },
      spec,
    })
  /** Runs the workflow, and reads the groups from the object that it makes. */
  async function mapped(): Promise<string | undefined> {
    const path = `/api/v1/namespaces/${namespace}/configmaps/mapped`
    await cluster.call('DELETE', path)
    const headers = {
      authorization: `Bearer ${await gateway.token('--subject', 'ada')}`,
      'content-type': 'application/json',
    }
    const body = JSON.stringify([{ uuid: randomUUID(), name: 'map', reason: 'A test' }])
    const answer = await fetch(`${gateway.url}/portal/main/workflows`, { method: 'PUT', headers, body })
    expect(answer.status).toBe(200)
    let found: { data?: { groups?: string } } = {}
    await until(async () => {
      const { status, body } = await cluster.call<typeof found>('GET', path)
      found = body
      return status === 200
    }, soon)
    return found.data?.groups
  }

  beforeAll(async () => {
    for (const plural of ['groupmetadatas', 'namespacegroupmetadatas']) {
      const definition = parse(readFileSync(`deploy/crds/${plural}.yaml`, 'utf8')) as { metadata: { name: string } }
      await cluster.defineKind(definition, `/apis/${group}/v1/${plural}`)
    }
    namespace = await cluster.namespace()
    cpSync('examples/portal-api', config, { recursive: true })
    const { url, ca, adminToken } = cluster.connection
    const params = { url, token: adminToken, certificate: Buffer.from(ca).toString('base64') }
    const tasks = [
      { taskType: 'addAttribute', name: 'memberOf', value: 'cn=Security,dc=example,dc=com', remove: false },
      { taskType: 'customTask', className: 'tasks.JavaScriptTask', params: { javaScript: script } },
      {
        taskType: 'customTask',
        className: 'com.tremolosecurity.provisioning.tasks.CreateK8sObject',
        params: {
          targetName: 'k8s',
          srcType: 'yaml',
          template: stringify({
            apiVersion: 'v1',
            kind: 'ConfigMap',
            metadata: { name: 'mapped', namespace },
            data: { groups: '$mapped$' },
          }),
        },
      },
    ]
    const objects = [
      {
        apiVersion: `${group}/v1`,
        kind: 'Target',
        metadata: { name: 'k8s' },
        spec: {
          className: 'com.tremolosecurity.unison.openshiftv3.OpenShiftTarget',
          params: Object.entries(params).map(([name, value]) => ({ name, value })),
        },
      },
      {
        apiVersion: `${group}/v2`,
        kind: 'Application',
        metadata: { name: 'groups' },
        spec: {
          cookieConfig: { cookiesEnabled: false },
          urls: [
            {
              hosts: ['127.0.0.1'],
              uri: '/groups',
              azRules: [{ scope: 'dn', constraint: 'o=Tremolo' }],
              filterChain: [
                {
                  className: 'com.tremolosecurity.proxy.filters.SetupGroupMetadataWatch',
                  params: { extIsDN: 'true', target: 'k8s', namespace },
                },
              ],
            },
          ],
        },
      },
      {
        apiVersion: `${group}/v1`,
        kind: 'GroupMetaData',
        metadata: { name: 'of-the-folder' },
        spec: { groupName: 'Auditors', externalName: 'CN=security, DC=example, DC=com' },
      },
      {
        apiVersion: `${group}/v1`,
        kind: 'Workflow',
        metadata: { name: 'map' },
        spec: { label: 'map', description: 'map', inList: true, orgId: 'root', tasks: stringify(tasks) },
      },
    ]
    writeFileSync(join(config, 'groups.yaml'), objects.map((object) => stringify(object)).join('---\n'))
    gateway = await startGatewayProcess({ config, dataFolder: join(folder, 'data') })
  }, 120_000)

  afterAll(async () => {
    await gateway?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  test('a workflow maps groups by the objects of the folder and of the cluster, as they are now', {
    timeout: 300_000,
  }, async () => {
    expect(await mapped()).toBe('auditors')
    await create('GroupMetaData', 'security', {
      groupName: 'security-external',
      externalName: 'CN=Security,DC=example,DC=com',
    })
    await create('NamespaceGroupMetaData', 'payroll', {
      cluster: 'k8s',
      namespace: 'payroll',
      mappings: [
        { groupName: 'payroll-viewers', externalName: 'cn=security,dc=example,dc=com', roleName: 'viewers' },
        { groupName: 'payroll-admins', externalName: 'cn=others,dc=example,dc=com', roleName: 'administrators' },
      ],
    })
    await until(async () => (await mapped()) === 'auditors security-external payroll-viewers', soon)
  })
})
