import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { PlainBrowser } from '#testing/gateway/plain-browser.ts'
import { onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'
import { addPerson } from '#testing/stories/add-person.ts'

const group = 'openunison.tremolo.io'
const password = 'correct horse battery'
/** The meaning of "within seconds" on a busy machine. */
const soon = 60_000

/** In the form of OpenUnison. */
const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `endsessions.${group}` },
  spec: {
    group,
    scope: 'Namespaced',
    names: { plural: 'endsessions', singular: 'endsession', kind: 'EndSession' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: { spec: { type: 'object', properties: { dn: { type: 'string' } } } },
          },
        },
      },
    ],
  },
}

onKubernetes('EndSession objects', (cluster) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-end-sessions-'))
  const [config, dataFolder] = [join(folder, 'config'), join(folder, 'data')]
  let gateway: GatewayProcess
  let namespace = ''

  /** The right to list them, and no other. */
  async function accountToken(): Promise<string> {
    const name = 'gatehouse'
    const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`
    await cluster.serviceAccount({ namespace, name })
    await cluster.must('POST', `${rbac}/roles`, {
      metadata: { name },
      rules: [{ apiGroups: [group], resources: ['endsessions'], verbs: ['list'] }],
    })
    await cluster.must('POST', `${rbac}/rolebindings`, {
      metadata: { name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
      subjects: [{ kind: 'ServiceAccount', name, namespace }],
    })
    return cluster.token({ namespace, name }, { seconds: 3600 })
  }

  beforeAll(async () => {
    await cluster.defineKind(definition, `/apis/${group}/v1/endsessions`)
    namespace = await cluster.namespace()
    cpSync('examples/login', config, { recursive: true })
    const { url, ca } = cluster.connection
    const params = { url, token: await accountToken(), certificate: Buffer.from(ca).toString('base64') }
    const target = {
      apiVersion: `${group}/v1`,
      kind: 'Target',
      metadata: { name: 'k8s' },
      spec: {
        className: 'com.tremolosecurity.unison.openshiftv3.OpenShiftTarget',
        params: Object.entries(params).map(([name, value]) => ({ name, value })),
      },
    }
    writeFileSync(join(config, 'k8s.yaml'), stringify(target))
    const filter = `        - className: com.tremolosecurity.proxy.filters.SetupEndSessionWatch
          params: { k8sTarget: k8s, namespace: ${namespace} }
`
    const hello = join(config, 'hello.yaml')
    writeFileSync(
      hello,
      readFileSync(hello, 'utf8').replace(/(filterChain:\n)( +- className: filters.Plugin)/, `$1${filter}$2`),
    )
    for (const login of ['ada', 'grace']) await addPerson(config, dataFolder, login, password)
    gateway = await startGatewayProcess({ config, dataFolder })
  }, 120_000)

  afterAll(async () => {
    await gateway?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  test('an object ends the sessions of its user, and the user logs in again', { timeout: 180_000 }, async () => {
    const [ada, grace] = [new PlainBrowser(gateway.url), new PlainBrowser(gateway.url)]
    await ada.logIn('/hello', 'ada', password)
    await grace.logIn('/hello', 'grace', password)
    expect([(await ada.get('/hello')).status, (await grace.get('/hello')).status]).toEqual([200, 200])
    const copy = ada.at(gateway.url)

    // The API server cuts the time to seconds, so the object counts for the second in which it is created.
    await cluster.must('POST', `/apis/${group}/v1/namespaces/${namespace}/endsessions`, {
      apiVersion: `${group}/v1`,
      kind: 'EndSession',
      metadata: { generateName: 'ada-' },
      spec: { dn: 'uid=ada,ou=staff,o=Tremolo' },
    })
    await until(async () => (await ada.get('/hello', { accept: 'application/json' })).status === 401, soon)
    expect((await copy.get('/hello')).location).toMatch(/^\/auth\/formLogin\?login=/)
    expect((await grace.get('/hello')).status).toBe(200)

    await delay(1_100)
    const again = await ada.logIn('/hello', 'ada', password)
    expect([again.status, again.location]).toEqual([303, '/hello'])
    expect(JSON.parse((await ada.get('/hello')).body)).toMatchObject({ uid: 'ada' })
  })
})
