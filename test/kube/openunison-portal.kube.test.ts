import { randomUUID } from 'node:crypto'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseAllDocuments, stringify } from 'yaml'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway-process.ts'
import { onKubernetes } from '#testing/on-kubernetes.ts'

/** The meaning of "within seconds" on a busy machine. */
const soon = 60_000

interface ConfigObject {
  readonly kind: string
  readonly metadata: { readonly name: string }
}

/** The form, its badge and its workflow, as for OpenUnison; only the login, the org and the approvers are those of the example. */
function namespaceObjects(): ConfigObject[] {
  const text = readFileSync('test/openunison-portal/namespaces.yaml', 'utf8')
    .replaceAll('authChain: login-service', 'authChain: api')
    .replaceAll('results: { azFail: login-failure, auFail: login-failure }', 'results: {}')
    .replaceAll('cookiesEnabled: true', 'cookiesEnabled: false')
    .replaceAll('0b1f6a52-54d1-4d0e-9a63-1f2f6a1c7c11', 'root')
    .replaceAll(
      '{ scope: filter, constraint: (groups=administrators) }',
      "{ scope: group, constraint: 'cn=owners,ou=groups,ou=people,o=Tremolo' }",
    )
  return parseAllDocuments(text)
    .map((document) => document.toJS() as ConfigObject)
    .filter(({ metadata }) => metadata.name === 'new-namespace')
}

onKubernetes('namespaces on request, in the form of OpenUnison', (cluster) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-openunison-portal-'))
  const config = join(folder, 'config')
  const nameSpace = `team-${randomUUID().slice(0, 13)}`
  const namespacePath = `/api/v1/namespaces/${nameSpace}`
  let gateway: GatewayProcess

  const call = async (user: string, method: string, path: string, body?: unknown) => {
    const headers = {
      authorization: `Bearer ${await gateway.token('--subject', user)}`,
      'content-type': 'application/json',
    }
    const text = body === undefined ? {} : { body: JSON.stringify(body) }
    const answer = await fetch(`${gateway.url}${path}`, { method, headers, ...text })
    const content = await answer.text()
    return { status: answer.status, body: (content === '' ? undefined : JSON.parse(content)) as unknown }
  }
  const register = (name: string) =>
    call('ada', 'POST', '/newproject/register/submit', { attributes: { cluster: 'k8s', nameSpace: name } })

  beforeAll(async () => {
    cpSync('examples/portal-api', config, { recursive: true })
    const { url, ca, adminToken } = cluster.connection
    const params = { url, token: adminToken, certificate: Buffer.from(ca).toString('base64'), useToken: 'true' }
    const target = {
      apiVersion: 'openunison.tremolo.io/v1',
      kind: 'Target',
      metadata: { name: 'k8s' },
      spec: {
        className: 'com.tremolosecurity.unison.openshiftv3.OpenShiftTarget',
        params: Object.entries(params).map(([name, value]) => ({ name, value })),
      },
    }
    const objects = [target, ...namespaceObjects()]
    expect(objects.map(({ kind }) => kind)).toEqual(['Target', 'Application', 'PortalUrl', 'Workflow'])
    writeFileSync(join(config, 'namespaces.yaml'), objects.map((object) => stringify(object)).join('---\n'))
    gateway = await startGatewayProcess({
      config,
      dataFolder: join(folder, 'data'),
      environment: { OU_HOST: '127.0.0.1' },
    })
  })
  afterAll(async () => {
    await gateway?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  test('the user finds the badge and requests, the approver approves, and the namespace has its RoleBindings', {
    timeout: 300_000,
  }, async () => {
    expect(await call('ada', 'GET', '/portal/main/urls/org/root')).toMatchObject({
      status: 200,
      body: expect.arrayContaining([expect.objectContaining({ label: 'New namespace' })]),
    })
    expect(await call('ada', 'GET', '/newproject/register/config')).toMatchObject({
      status: 200,
      body: { attributes: expect.arrayContaining([expect.objectContaining({ name: 'cluster' })]) },
    })
    expect(await register('default')).toEqual({ status: 500, body: { errors: ['This namespace exists'] } })
    expect(await register(nameSpace)).toMatchObject({ status: 200 })

    let id = ''
    await until(async () => {
      const { body } = await call('grace', 'GET', '/portal/main/approvals')
      const { approvals } = body as { approvals: { approval: string; wfName: string }[] }
      id = approvals.find(({ wfName }) => wfName === 'new-namespace')?.approval ?? ''
      return id !== ''
    }, soon)
    expect((await cluster.call('GET', namespacePath)).status).toBe(404)
    const decision = { approved: true, reason: 'Yes' }
    expect(await call('grace', 'PUT', `/portal/main/approvals/${id}`, decision)).toMatchObject({ status: 200 })

    const bindings = `/apis/rbac.authorization.k8s.io/v1/namespaces/${nameSpace}/rolebindings`
    await until(async () => (await cluster.call('GET', `${bindings}/viewers`)).status === 200, soon)
    expect(await cluster.must('GET', namespacePath)).toMatchObject({
      metadata: { labels: { 'acme.test/requests': 'enabled' } },
    })
    for (const [name, role] of [
      ['administrators', 'admin'],
      ['viewers', 'view'],
    ]) {
      expect(await cluster.must('GET', `${bindings}/${name}`)).toMatchObject({
        subjects: [{ kind: 'Group', name: `k8s-namespace-${name}-k8s-${nameSpace}` }],
        roleRef: { kind: 'ClusterRole', name: role },
      })
    }
    expect(await register(nameSpace)).toEqual({ status: 500, body: { errors: ['This namespace exists'] } })
  })
})
