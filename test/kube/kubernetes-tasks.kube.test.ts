import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { commandOutput } from '#testing/gateway/command.ts'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'

const openUnison = 'com.tremolosecurity.provisioning.tasks'
const rbac = 'rbac.authorization.k8s.io'
/** The meaning of "within seconds" on a busy machine. */
const soon = 60_000

onKubernetes('workflows for namespaces', (cluster) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-kubernetes-tasks-'))
  const config = join(folder, 'config')
  const dataFolder = join(folder, 'data')
  const nameSpace = `team-${randomUUID().slice(0, 13)}`
  const namespacePath = `/api/v1/namespaces/${nameSpace}`
  const bindingPath = `/apis/${rbac}/v1/namespaces/${nameSpace}/rolebindings/admin-binding`
  let gateway: GatewayProcess | undefined

  const create = (template: string) => ({
    taskType: 'customTask',
    className: `${openUnison}.CreateK8sObject`,
    params: { targetName: '$cluster$', template, srcType: 'yaml', writeToRequest: '$useGit$' },
  })
  const asked = (name: string, value: string) => ({
    taskType: 'addAttribute',
    name,
    value,
    remove: false,
    addToRequest: true,
  })
  const approval = (label: string, onSuccess: readonly object[]) => ({
    taskType: 'approval',
    label,
    emailTemplate: label,
    mailAttr: 'mail',
    failureEmailSubject: 'Denied',
    failureEmailMsg: 'Denied',
    approvers: [{ scope: 'group', constraint: 'cn=owners,ou=groups,ou=people,o=Tremolo' }],
    onSuccess,
  })
  const workflow = (name: string, tasks: readonly object[]) => ({
    apiVersion: 'openunison.tremolo.io/v1',
    kind: 'Workflow',
    metadata: { name },
    spec: { label: name, description: name, inList: true, orgId: 'root', tasks: stringify(tasks) },
  })
  const objects = (): object[] => {
    const { url, ca, adminToken } = cluster.connection
    const params = { url, token: adminToken, certificate: Buffer.from(ca).toString('base64'), useToken: 'true' }
    return [
      {
        apiVersion: 'openunison.tremolo.io/v1',
        kind: 'Target',
        metadata: { name: 'k8s' },
        spec: {
          className: 'com.tremolosecurity.unison.openshiftv3.OpenShiftTarget',
          params: Object.entries(params).map(([name, value]) => ({ name, value })),
        },
      },
      workflow('new-namespace', [
        asked('nameSpace', nameSpace),
        asked('cluster', 'k8s'),
        { taskType: 'customTask', className: `${openUnison}.CheckForGit`, params: {} },
        approval('Create namespace $nameSpace$', [
          create(
            stringify({
              kind: 'Namespace',
              apiVersion: 'v1',
              metadata: { name: '$nameSpace$', labels: { name: '$nameSpace$' } },
            }),
          ),
          create(
            stringify({
              kind: 'RoleBinding',
              apiVersion: `${rbac}/v1`,
              metadata: { name: 'admin-binding', namespace: '$nameSpace$' },
              subjects: [{ kind: 'Group', name: 'k8s-namespace-administrators-$nameSpace$', apiGroup: rbac }],
              roleRef: { kind: 'ClusterRole', name: 'admin', apiGroup: rbac },
            }),
          ),
          {
            taskType: 'customTask',
            className: `${openUnison}.WaitForStatus`,
            params: {
              holdingTarget: 'k8s',
              namespace: 'openunison',
              label: 'wait',
              target: '$cluster$',
              uri: '/api/v1/namespaces/$nameSpace$/configmaps/quota',
              conditions: ['.data.phase=Ready', '.data.owner=$nameSpace$'],
              pollSeconds: '1',
            },
          },
          {
            taskType: 'customTask',
            className: `${openUnison}.PatchK8sObject`,
            params: {
              targetName: '$cluster$',
              kind: 'Namespace',
              url: '/api/v1/namespaces/$nameSpace$',
              template: '{"metadata": {"annotations": {"state": "ready"}}}',
            },
          },
        ]),
      ]),
      workflow('delete-namespace', [
        approval('Delete the namespace', [
          {
            taskType: 'customTask',
            className: `${openUnison}.DeleteK8sObject`,
            params: { targetName: 'k8s', kind: 'Namespace', url: namespacePath },
          },
        ]),
      ]),
    ]
  }

  const start = async (crashPoint?: string): Promise<GatewayProcess> => {
    const environment = { GATEHOUSE_CHAOS_POINT: crashPoint ?? '', GATEHOUSE_CHAOS_LEASE_MILLIS: '2000' }
    gateway = await startGatewayProcess({ config, dataFolder, crashes: true, environment })
    return gateway
  }
  const call = async (on: GatewayProcess, user: string, method: string, path: string, body?: unknown) => {
    const headers = { authorization: `Bearer ${await on.token('--subject', user)}`, 'content-type': 'application/json' }
    const text = body === undefined ? {} : { body: JSON.stringify(body) }
    const answer = await fetch(`${on.url}/portal/main${path}`, { method, headers, ...text })
    const content = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${content}`)
    return (content === '' ? undefined : JSON.parse(content)) as never
  }
  interface Open {
    readonly approvals: readonly { readonly approval: string; readonly wfName: string }[]
  }
  async function request(on: GatewayProcess, name: string): Promise<string> {
    await call(on, 'ada', 'PUT', '/workflows', [{ uuid: randomUUID(), name, reason: 'A new team' }])
    let id: string | undefined
    await until(async () => {
      const { approvals }: Open = await call(on, 'grace', 'GET', '/approvals')
      id = approvals.find(({ wfName }) => wfName === name)?.approval
      return id !== undefined
    }, soon)
    return id ?? ''
  }
  const approve = (on: GatewayProcess, id: string) =>
    call(on, 'grace', 'PUT', `/approvals/${id}`, { approved: true, reason: 'Yes' })
  const states = async (on: GatewayProcess): Promise<string[]> => {
    const { requests }: { requests: { state: string }[] } = await call(on, 'ada', 'GET', '/requests')
    return requests.map(({ state }) => state)
  }
  const changes = async (): Promise<string[]> => {
    const lines = (await commandOutput('audit', 'export', '--data', dataFolder)).trim().split('\n')
    const rows = lines.map((line) => JSON.parse(line) as { target: string; action: string; value?: string })
    return rows.filter(({ target }) => target === 'k8s').map(({ action, value }) => `${action} ${value}`)
  }

  beforeAll(() => {
    cpSync('examples/portal-api', config, { recursive: true })
    writeFileSync(
      join(config, 'namespaces.yaml'),
      objects()
        .map((object) => stringify(object))
        .join('---\n'),
    )
  })
  afterAll(async () => {
    gateway?.process.kill('SIGKILL')
    await gateway?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  test('a namespace is created after an approval, through a crash, a wait and a restart', {
    timeout: 300_000,
  }, async () => {
    const first = await start('after-target-call')
    const id = await request(first, 'new-namespace')
    const { changes: planned }: { changes: object } = await call(first, 'grace', 'GET', `/approvals/${id}?changes=true`)
    expect(planned).toMatchObject({
      steps: [
        { kind: 'object', action: 'create', target: 'k8s', name: namespacePath },
        { kind: 'object', action: 'create', target: 'k8s', name: bindingPath },
        { kind: 'wait' },
        { kind: 'object', action: 'change', target: 'k8s', name: namespacePath },
      ],
    })
    expect((await cluster.call('GET', namespacePath)).status).toBe(404)
    const killed = once(first.process, 'exit')
    await approve(first, id)
    await killed
    expect((await cluster.call('GET', namespacePath)).status).toBe(200)
    expect((await cluster.call('GET', bindingPath)).status).toBe(404)

    const second = await start()
    await until(async () => (await cluster.call('GET', bindingPath)).status === 200, soon)
    await until(async () => (await states(second))[0] === 'waiting', soon)
    expect(await cluster.must('GET', bindingPath)).toMatchObject({
      subjects: [{ name: `k8s-namespace-administrators-${nameSpace}` }],
    })
    expect(await second.stop()).toBe(0)

    const third = await start()
    const quota = { metadata: { name: 'quota' }, data: { phase: 'Pending', owner: nameSpace } }
    await cluster.must('POST', `${namespacePath}/configmaps`, quota)
    await until(async () => third.output().includes('does not have .data.phase=Ready'), soon)
    await cluster.must('PUT', `${namespacePath}/configmaps/quota`, {
      ...quota,
      data: { ...quota.data, phase: 'Ready' },
    })
    await until(async () => (await states(third))[0] === 'completed', soon)
    expect(await cluster.must('GET', namespacePath)).toMatchObject({ metadata: { annotations: { state: 'ready' } } })
    expect(await third.stop()).toBe(0)
    expect(await changes()).toEqual([`add ${namespacePath}`, `add ${bindingPath}`, `replace ${namespacePath}`])
  })

  test('a second request changes nothing that is as wanted, and a namespace is deleted', {
    timeout: 300_000,
  }, async () => {
    const running = await start()
    const before = await changes()
    await approve(running, await request(running, 'new-namespace'))
    await until(async () => (await states(running))[0] === 'completed', soon)
    // The annotation of the first run is not in the template, so it is removed and added again.
    expect((await changes()).slice(before.length)).toEqual([`replace ${namespacePath}`, `replace ${namespacePath}`])
    await approve(running, await request(running, 'delete-namespace'))
    await until(async () => (await states(running))[0] === 'completed', soon)
    const ending: { metadata: { deletionTimestamp?: string } } = await cluster.must('GET', namespacePath)
    expect(ending.metadata.deletionTimestamp).toBeDefined()
    await approve(running, await request(running, 'delete-namespace'))
    await until(async () => (await states(running))[0] === 'completed', soon)
    expect((await changes()).slice(before.length + 2)).toEqual([`delete ${namespacePath}`])
  })
})
