import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { configResources } from '#config/sources/cluster-documents.ts'
import { type GatewayProcess, gatehouse, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { defineAll, defineOpenUnison, objectPath, tokenKubeconfig } from '#testing/kubernetes/custom-resources.ts'
import { type KubeApiServer, startKubeApiServer } from '#testing/kubernetes/kube-api-server.ts'
import { kubeBinaries } from '#testing/kubernetes/kube-binaries.ts'
import type { KubeClient } from '#testing/kubernetes/kube-client.ts'

const run = promisify(execFile)
const group = 'openunison.tremolo.io'
/** The meaning of "within seconds" on a busy machine. */
const soon = 20_000

interface Condition {
  readonly status: string
  readonly reason: string
  readonly message: string
  readonly observedGeneration: number
  readonly lastTransitionTime: string
}

interface StoredObject {
  readonly metadata: { readonly generation: number; readonly resourceVersion: string }
  readonly spec: unknown
  readonly status?: { readonly observedGeneration: number; readonly conditions: readonly Condition[] }
}

const application = (name: string, uri: string, more: object = {}) => ({
  apiVersion: `${group}/v2`,
  kind: 'Application',
  metadata: { name },
  spec: {
    cookieConfig: { cookiesEnabled: false },
    urls: [
      {
        hosts: ['127.0.0.1'],
        uri,
        azRules: [{ scope: 'dn', constraint: 'o=Tremolo' }],
        filterChain: [
          { className: 'filters.DevelopmentIssuer', params: { issuer: `#[GATEHOUSE_URL]${uri}` }, ...more },
        ],
      },
    ],
  },
})

/** The rights that the chart grants, and no more. */
async function account(cluster: KubeClient, namespace: string): Promise<string> {
  const name = 'gatehouse'
  const plurals = configResources.map(({ plural }) => plural)
  await cluster.serviceAccount({ namespace, name })
  const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`
  await cluster.must('POST', `${rbac}/roles`, {
    metadata: { name },
    rules: [
      { apiGroups: [group], resources: plurals, verbs: ['list', 'watch'] },
      { apiGroups: [group], resources: plurals.map((plural) => `${plural}/status`), verbs: ['update'] },
      { apiGroups: [group], resources: ['openunisons'], verbs: ['list', 'watch'] },
      { apiGroups: [''], resources: ['configmaps'], resourceNames: ['gatehouse-config'], verbs: ['list', 'watch'] },
      { apiGroups: [''], resources: ['secrets'], resourceNames: ['issuer', 'orchestra-secrets'], verbs: ['get'] },
      { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['create'] },
      {
        apiGroups: ['coordination.k8s.io'],
        resources: ['leases'],
        resourceNames: ['gatehouse'],
        verbs: ['get', 'update'],
      },
    ],
  })
  await cluster.must('POST', `${rbac}/rolebindings`, {
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
    subjects: [{ kind: 'ServiceAccount', name, namespace }],
  })
  return cluster.token({ namespace, name }, { seconds: 3600 })
}

describe.skipIf(inject('kube') === undefined)('a gateway whose configuration is a namespace', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-kube-config-'))
  const kubeconfig = join(folder, 'kubeconfig')
  let server: KubeApiServer
  let cluster: KubeClient
  let gateway: GatewayProcess
  let namespace = ''

  beforeAll(async () => {
    server = await startKubeApiServer(await kubeBinaries())
    cluster = server.client
    await defineAll(cluster)
    namespace = await cluster.namespace()
    writeFileSync(kubeconfig, tokenKubeconfig(cluster, await account(cluster, namespace)))
    await create(application('first', '/first'))
    gateway = await start()
  }, 180_000)

  afterAll(async () => {
    await gateway?.stop()
    await server?.stop()
    rmSync(folder, { recursive: true, force: true })
  }, 60_000)

  const start = (...args: string[]) =>
    startGatewayProcess({ config: `kubernetes:${namespace}`, environment: { KUBECONFIG: kubeconfig }, args })
  const pathOf = (kind: string, name = '') =>
    `${objectPath(`${group}/${kind === 'Application' ? 'v2' : 'v1'}`, kind, namespace)}${name && `/${name}`}`
  const create = (object: { kind: string }) => cluster.must('POST', pathOf(object.kind), object)
  const remove = (kind: string, name: string) => cluster.must('DELETE', pathOf(kind, name))
  const read = (kind: string, name: string) => cluster.must<StoredObject>('GET', pathOf(kind, name))
  const condition = async (kind: string, name: string): Promise<Condition | undefined> => {
    const { status, metadata } = await read(kind, name)
    const found = status?.conditions[0]
    return found?.observedGeneration === metadata.generation ? found : undefined
  }
  /** Tried again if the gateway wrote the status meanwhile. */
  async function change(kind: string, name: string, edit: (object: StoredObject) => object): Promise<void> {
    const put = async () => cluster.call('PUT', pathOf(kind, name), edit(await read(kind, name)))
    let answer = await put()
    for (let again = 0; answer.status === 409 && again < 20; again++) answer = await put()
    expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  }
  const issuerAt = async (uri: string): Promise<string | undefined> => {
    const answer = await fetch(`${gateway.url}${uri}/.well-known/openid-configuration`)
    return answer.status === 200 ? ((await answer.json()) as { issuer: string }).issuer : undefined
  }
  const serves = (uri: string) => until(async () => (await issuerAt(uri)) !== undefined, soon)
  const check = () => {
    const args = ['check', '--config', `kubernetes:${namespace}`, '--kubeconfig', kubeconfig]
    const environment = { ...process.env, GATEHOUSE_URL: gateway.url }
    return run(gatehouse, args, { env: environment }).then(
      ({ stdout }) => ({ code: 0, stdout, stderr: '' }),
      ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({ code, stdout, stderr }),
    )
  }
  async function tells(kind: string, name: string, expected: object): Promise<void> {
    let last: unknown
    await until(async () => {
      last = await condition(kind, name)
      return last !== undefined && Object.entries(expected).every(([key, value]) => (last as never)[key] === value)
    }, soon).catch(() => {})
    expect(last).toMatchObject(expected)
  }

  test('serves its objects, and writes their status once', async () => {
    expect(await issuerAt('/first')).toBe(`${gateway.url}/first`)
    await tells('Application', 'first', { status: 'True', reason: 'Served', message: 'served' })
    const before = (await read('Application', 'first')).metadata.resourceVersion
    await new Promise((resume) => setTimeout(resume, 1500))
    expect((await read('Application', 'first')).metadata.resourceVersion).toBe(before)
    expect(await check()).toEqual({ code: 0, stdout: '', stderr: '' })
    const explain = ['explain', '--config', `kubernetes:${namespace}`, 'GET', `${gateway.url}/first/certs`]
    const env = { ...process.env, GATEHOUSE_URL: gateway.url, KUBECONFIG: kubeconfig }
    expect((await run(gatehouse, explain, { env })).stdout).toContain(`Application/${namespace}/first`)
  })

  test('a new, a changed and a removed object are live within seconds, and nothing else changes', async () => {
    await create(application('second', '/second'))
    await serves('/second')
    await change('Application', 'second', (object) => ({ ...object, spec: application('second', '/other').spec }))
    await serves('/other')
    expect(await issuerAt('/second')).toBeUndefined()
    await tells('Application', 'second', { status: 'True', observedGeneration: 2 })
    await remove('Application', 'second')
    await until(async () => (await issuerAt('/other')) === undefined, soon)
    expect(await issuerAt('/first')).toBeDefined()
  })

  test('a new broken object is set aside with its errors, and the rest is served', async () => {
    const broken = application('broken', '/broken', { params: { isuer: 'x' } })
    await create(broken)
    await tells('Application', 'broken', { status: 'False', reason: 'SetAside' })
    const { message = '', lastTransitionTime } = (await condition('Application', 'broken')) ?? {}
    expect(message.split('\n')).toEqual([
      expect.stringMatching(/^spec\.urls\[0\]\.filterChain\[0\]\.params.*issuer/),
      expect.stringMatching(/^spec\.urls\[0\]\.filterChain\[0\]\.params\.isuer: .*did you mean "issuer"/),
    ])
    expect(await condition('Application', 'first')).toMatchObject({ status: 'True', reason: 'Served' })
    expect(await issuerAt('/first')).toBeDefined()

    const checked = await check()
    expect(checked.code).toBe(1)
    const [own, dependent, counts] = checked.stdout.trim().split('\n').slice(-3)
    expect(own).toMatch(new RegExp(`^Application/${namespace}/broken: spec\\.urls`))
    expect(dependent).toBe('1 set aside because of its own errors: Application "broken"')
    expect(counts).toMatch(/^\d+ objects? served, 1 set aside$/)
    expect((await fetch(`${gateway.url}/broken`)).status).toBe(503)

    const chain = { apiVersion: `${group}/v1`, kind: 'AuthenticationChain', metadata: { name: 'none' } }
    await create({ ...chain, spec: { level: 1, authMechs: [{ name: 'absent', required: 'required' }] } } as never)
    const guarded = application('guarded', '/guarded')
    const [url] = guarded.spec.urls
    await create({ ...guarded, spec: { ...guarded.spec, urls: [{ ...url, authChain: 'none' }] } } as never)
    await tells('Application', 'guarded', { status: 'False', reason: 'SetAside' })
    expect((await condition('Application', 'guarded'))?.message).toBe(
      'because of mechanism "absent": no mechanism named "absent"',
    )
    expect((await fetch(`${gateway.url}/guarded/certs`)).status).toBe(503)
    await remove('Application', 'guarded')
    await remove('AuthenticationChain', 'none')

    await create(application('beside', '/beside'))
    await serves('/beside')
    await change('Application', 'broken', (object) => ({ ...object, spec: application('broken', '/mended').spec }))
    await serves('/mended')
    await tells('Application', 'broken', { status: 'True', reason: 'Served' })
    await tells('Application', 'beside', { status: 'True', reason: 'Served' })
    const mended = (await condition('Application', 'broken'))?.lastTransitionTime ?? ''
    expect(Date.parse(mended)).toBeGreaterThanOrEqual(Date.parse(lastTransitionTime ?? ''))
  })

  test('a change that would set aside a served object keeps everything as it is', async () => {
    const wrong = application('beside', '/beside', { params: { isuer: 'x' } })
    await change('Application', 'beside', (object) => ({ ...object, spec: wrong.spec }))
    await tells('Application', 'beside', { status: 'False', reason: 'Invalid' })
    expect(await issuerAt('/beside')).toBeDefined()
    await create(application('waiting', '/waiting'))
    await tells('Application', 'waiting', { status: 'False', reason: 'Waiting' })
    expect((await condition('Application', 'waiting'))?.message).toContain(`Application/${namespace}/beside`)
    expect(await condition('Application', 'first')).toMatchObject({ status: 'True', reason: 'Served' })
    await change('Application', 'beside', (object) => ({ ...object, spec: application('beside', '/beside').spec }))
    await serves('/waiting')
    await tells('Application', 'beside', { status: 'True', reason: 'Served' })
  })

  test('a burst of changes is loaded a few times, not once for each', async () => {
    const reloads = async (): Promise<number> => {
      const text = await (await fetch(`${gateway.metricsUrl}/metrics`)).text()
      return Number(/^gatehouse_configuration_reloads_total\{outcome="applied"\} (\d+)/m.exec(text)?.[1] ?? 0)
    }
    const before = await reloads()
    const names = Array.from({ length: 40 }, (_, i) => `burst-${i}`)
    const org = (name: string) => ({ apiVersion: `${group}/v1`, kind: 'Org', metadata: { name }, spec: { uuid: name } })
    await Promise.all(names.map((name) => create(org(name))))
    for (const name of names) await tells('Org', name, { status: 'True' })
    const made = (await reloads()) - before
    expect(made).toBeGreaterThan(0)
    expect(made).toBeLessThan(10)
  })

  test('a workflow with invalid YAML gets the line in its text', async () => {
    const spec = { tasks: '- taskType: provision\n  target: x\n bad: [\n' }
    await cluster.must('POST', objectPath(`${group}/v2`, 'Workflow', namespace), {
      apiVersion: `${group}/v2`,
      kind: 'Workflow',
      metadata: { name: 'text' },
      spec,
    })
    await tells('Workflow', 'text', { status: 'False', reason: 'SetAside' })
    expect((await condition('Workflow', 'text'))?.message).toMatch(/^spec\.tasks: line 3: YAML: /)
    await remove('Workflow', 'text')
  })

  test('secrets come from Secrets, and a changed one is live within seconds', async () => {
    const { params: _, ...fromSecret } = {
      params: {},
      secretParams: [{ name: 'issuer', secretName: 'issuer', secretKey: 'url' }],
    }
    const object = application('secret', '/secret')
    const [url] = object.spec.urls
    const filterChain = [{ className: 'filters.DevelopmentIssuer', ...fromSecret }]
    await create({ ...object, spec: { ...object.spec, urls: [{ ...url, filterChain }] } } as never)
    await tells('Application', 'secret', { status: 'False', reason: 'SetAside' })
    expect((await condition('Application', 'secret'))?.message).toMatch(
      /secretParams\[0\]\.secretName: no such secret \(the key url of a Secret issuer/,
    )

    const secrets = `/api/v1/namespaces/${namespace}/secrets`
    const secret = (value: string) => ({
      metadata: { name: 'issuer' },
      stringData: { url: `${gateway.url}${value}\n` },
    })
    await cluster.must('POST', secrets, secret('/secret'))
    await until(async () => (await issuerAt('/secret')) === `${gateway.url}/secret`, soon)
    await cluster.must('PUT', `${secrets}/issuer`, secret('/secret/2'))
    await until(async () => (await issuerAt('/secret')) === `${gateway.url}/secret/2`, soon)
    expect(gateway.output()).not.toContain('/secret/2')
  })

  test('values and objects come from the ConfigMap too, with lines in its errors', async () => {
    const maps = `/api/v1/namespaces/${namespace}/configmaps`
    const name = 'gatehouse-config'
    const map = (data: object) => ({ metadata: { name }, data })
    await cluster.must('POST', maps, map({ 'values.yaml': 'PLACE: /from-values\n', 'notes.txt': '{' }))
    const object = application('values', '#[PLACE]')
    await create(object)
    await serves('/from-values')
    await cluster.must('PUT', `${maps}/${name}`, map({ 'values.yaml': 'PLACE: /from-other-values\nsts: 1\n' }))
    await until(async () => gateway.output().includes(`ConfigMap/${namespace}/${name}/values.yaml:2:1: sts`), soon)
    expect(await issuerAt('/from-values')).toBeDefined()
    await cluster.must('PUT', `${maps}/${name}`, map({ 'values.yaml': 'PLACE: /from-other-values\n' }))
    await serves('/from-other-values')
  })

  test('a live OpenUnison object gives its values, hosts and secrets, also when it changes', async () => {
    const params = { issuer: 'http://#[OU_HOST]:7/#[SECRET_PART]' }
    await create(application('outer', '#[OUTER_PLACE]', { params }))
    await tells('Application', 'outer', { status: 'False', reason: 'SetAside' })
    expect((await condition('Application', 'outer'))?.message).toContain('OUTER_PLACE')

    await defineOpenUnison(cluster)
    const objects = `/apis/${group}/v6/namespaces/${namespace}/openunisons`
    const openUnison = (place: string) => ({
      apiVersion: `${group}/v6`,
      kind: 'OpenUnison',
      metadata: { name: 'orchestra' },
      spec: {
        image: 'example.com/openunison:1',
        hosts: [{ names: [{ env_var: 'OU_HOST', name: '127.0.0.1' }] }],
        non_secret_data: [{ name: 'OUTER_PLACE', value: place }],
        secret_data: ['SECRET_PART'],
        source_secret: 'orchestra-secrets',
      },
    })
    await cluster.must('POST', `/api/v1/namespaces/${namespace}/secrets`, {
      metadata: { name: 'orchestra-secrets' },
      stringData: { SECRET_PART: 'from-the-secret' },
    })
    await cluster.must('POST', objects, openUnison('/outer'))
    // A kind that the cluster did not have is looked for every half minute.
    await until(async () => (await issuerAt('/outer')) !== undefined, 120_000)
    expect(await issuerAt('/outer')).toBe('http://127.0.0.1:7/from-the-secret')

    const change = async (next: object) => {
      const { metadata } = await cluster.must<StoredObject>('GET', `${objects}/orchestra`)
      await cluster.must('PUT', `${objects}/orchestra`, { ...next, metadata })
    }
    await change(openUnison('/outer-2'))
    await serves('/outer-2')
    expect(await issuerAt('/outer')).toBeUndefined()

    await cluster.must('POST', objects, { ...openUnison('/outer-3'), metadata: { name: 'rival' } })
    await until(async () => gateway.output().includes(`OpenUnison/${namespace}/rival: spec.non_secret_data`), soon)
    await create(application('held-up', '/held-up'))
    await tells('Application', 'held-up', { status: 'False', reason: 'Waiting' })
    expect((await condition('Application', 'held-up'))?.message).toContain(`OpenUnison/${namespace}/rival`)
    expect(await issuerAt('/outer-2')).toBeDefined()
    await cluster.must('DELETE', `${objects}/rival`)
    await serves('/held-up')
    expect((await cluster.must<{ status?: object }>('GET', `${objects}/orchestra`)).status).toBeUndefined()
    expect(gateway.output()).not.toContain('from-the-secret')
  }, 300_000)

  test('a group mapping is served', async () => {
    const mapping = { apiVersion: `${group}/v1`, kind: 'GroupMetaData', metadata: { name: 'security' } }
    await create({ ...mapping, spec: { groupName: 'security', externalName: 'cn=security,dc=example' } } as never)
    await tells('GroupMetaData', 'security', { status: 'True', reason: 'Served' })
  })

  test('a named ConfigMap must exist', async () => {
    const args = ['check', '--config', `kubernetes:${namespace}/absent`, '--kubeconfig', server.kubeconfig]
    await expect(run(gatehouse, args)).rejects.toMatchObject({
      code: 1,
      stdout: expect.stringContaining(`ConfigMap/${namespace}/absent:1:1: there is no such ConfigMap\n`),
    })
  })

  test('one of two replicas writes, and the other takes over', async () => {
    const other = await start()
    const lease = () =>
      cluster.must<{ spec: { holderIdentity: string } }>(
        'GET',
        `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/gatehouse`,
      )
    try {
      const before = (await lease()).spec.holderIdentity
      await gateway.stop()
      gateway = other
      await until(async () => ![before, ''].includes((await lease()).spec.holderIdentity), 30_000)
      await create(application('third', '/third'))
      await serves('/third')
      await tells('Application', 'third', { status: 'True' })
    } finally {
      if (gateway !== other) await other.stop()
    }
  })

  test('continues while the API server is down, and reads the changes when it is back', async () => {
    await server.kill()
    await new Promise((resume) => setTimeout(resume, 2_000))
    expect(await issuerAt('/first')).toBeDefined()
    await server.restart()
    await create(application('after', '/after'))
    await until(async () => (await issuerAt('/after')) !== undefined, 60_000)
    await tells('Application', 'after', { status: 'True' })
  }, 180_000)

  test('a strict gateway that does not start because of an error writes it to the status too', async () => {
    // Its lease stays behind, and the next process waits for it.
    gateway.process.kill('SIGKILL')
    await gateway.stop()
    await create(application('stopping', '/first'))
    const refusal = await start('--strict').then(
      () => 'started',
      (error: Error) => error.message,
    )
    expect(refusal).toMatch(new RegExp(`Application/${namespace}/stopping: .*/first`))
    await tells('Application', 'stopping', { status: 'False', reason: 'Invalid' })
    await remove('Application', 'stopping')
    gateway = await start()
  })

  test('an account without the right to list, and an absent cluster, are reported', async () => {
    await cluster.serviceAccount({ namespace, name: 'nobody' })
    const file = join(folder, 'nobody')
    writeFileSync(file, tokenKubeconfig(cluster, await cluster.token({ namespace, name: 'nobody' })))
    const failed = (args: string[]) =>
      run(gatehouse, ['check', ...args], { env: { PATH: process.env['PATH'] } }).then(
        () => '',
        ({ code, stderr }: { code: number; stderr: string }) => `${code} ${stderr}`,
      )
    expect(await failed(['--config', `kubernetes:${namespace}`, '--kubeconfig', file])).toMatch(
      /^1 gatehouse check: namespace test-\S+: list \w+: 403 Forbidden/,
    )
    expect(await failed(['--config', `kubernetes:${namespace}`])).toMatch(/^1 .*this process does not run in a cluster/)
    expect(await failed(['--config', 'kubernetes:'])).toMatch(/^1 .*is not kubernetes:NAMESPACE/)
  })
})
