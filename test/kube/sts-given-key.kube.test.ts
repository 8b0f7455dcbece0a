import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { keysCommand } from '#cli/commands/keys.ts'
import { configResources } from '#config/sources/cluster-documents.ts'
import { type GatewayProcess, gatehouse, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { defineAll, objectPath, tokenKubeconfig } from '#testing/kubernetes/custom-resources.ts'
import { onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'
import { badKeys, goodKey } from '#testing/sts/bad-keys.ts'

const run = promisify(execFile)
const group = 'openunison.tremolo.io'
/** A Secret is read again every few seconds. */
const soon = 60_000
const timeout = 240_000
const values = `sts:
  endpoints:
    - name: cloud
      audience: consumer
      path: /sts/cloud
      algorithm: ES256
      issuer: { host: issuer.example.com, keypair: cloud-key }
      azRules: [{ scope: filter, constraint: (saname=a) }]
`

onKubernetes('a signing key in a Secret', (cluster) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-given-key-'))
  const kubeconfig = join(folder, 'kubeconfig')
  const dataFolder = join(folder, 'data')
  const first = goodKey('ES256')
  let gateway: GatewayProcess
  let namespace = ''

  const start = () =>
    startGatewayProcess({ config: `kubernetes:${namespace}`, dataFolder, environment: { KUBECONFIG: kubeconfig } })
  const put = (text: string, method = 'PUT') =>
    cluster.must(method, `/api/v1/namespaces/${namespace}/secrets${method === 'PUT' ? '/cloud-key' : ''}`, {
      metadata: { name: 'cloud-key' },
      stringData: { 'tls.key': text },
    })
  const published = async (): Promise<string[]> => {
    const answer = await fetch(`${gateway.url}/sts/cloud/issuer-docs`)
    const { keys } = (await answer.json()) as { keys: { keys: { kid: string }[] } }
    return keys.keys.map(({ kid }) => kid)
  }
  const sourceOk = async (): Promise<string | undefined> => {
    const text = await (await fetch(`${gateway.metricsUrl}/metrics`)).text()
    return /^gatehouse_sts_key_source_ok\{endpoint="cloud"\} (\d)/m.exec(text)?.[1]
  }
  const list = async () => {
    const out: string[] = []
    const io = { stdout: (line: string) => void out.push(line), stderr: (line: string) => void out.push(line) }
    const code = await keysCommand(['list', '--data', dataFolder], io)
    return { code, text: out.join('\n') }
  }

  beforeAll(async () => {
    await defineAll(cluster)
    namespace = await cluster.namespace()
    const name = 'gatehouse'
    await cluster.serviceAccount({ namespace, name })
    const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`
    const plurals = configResources.map(({ plural }) => plural)
    await cluster.must('POST', `${rbac}/roles`, {
      metadata: { name },
      rules: [
        { apiGroups: [group], resources: [...plurals, 'openunisons'], verbs: ['list', 'watch'] },
        { apiGroups: [group], resources: plurals.map((plural) => `${plural}/status`), verbs: ['update'] },
        { apiGroups: [''], resources: ['configmaps'], resourceNames: ['gatehouse-config'], verbs: ['list', 'watch'] },
        { apiGroups: [''], resources: ['secrets'], resourceNames: ['cloud-key'], verbs: ['get'] },
        { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['create', 'get', 'update'] },
      ],
    })
    await cluster.must('POST', `${rbac}/rolebindings`, {
      metadata: { name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
      subjects: [{ kind: 'ServiceAccount', name, namespace }],
    })
    writeFileSync(kubeconfig, tokenKubeconfig(cluster, await cluster.token({ namespace, name }, { seconds: 3600 })))
    await cluster.must('POST', objectPath(`${group}/v1`, 'Target', namespace), {
      apiVersion: `${group}/v1`,
      kind: 'Target',
      metadata: { name: 'k8s' },
      spec: {
        className: 'targets.Kubernetes',
        params: [
          { name: 'url', value: 'https://127.0.0.1:1' },
          { name: 'token', value: 'x' },
        ],
      },
    })
    await cluster.must('POST', `/api/v1/namespaces/${namespace}/configmaps`, {
      metadata: { name: 'gatehouse-config' },
      data: { 'values.yaml': values },
    })
    await put(first, 'POST')
    gateway = await start()
  }, 240_000)

  afterAll(async () => {
    await gateway?.stop()
    rmSync(folder, { recursive: true, force: true })
  }, 60_000)

  test('that becomes invalid keeps the old one in use, and appears in log, metric and keys list', {
    timeout,
  }, async () => {
    const [kid] = await published()
    const kinds = ['RSA of 1024 bits', 'P-521']
    const bad = badKeys().filter(({ what }) => kinds.includes(what))
    expect(bad).toHaveLength(kinds.length)
    for (const { text } of bad) {
      await put(text)
      await until(async () => (await sourceOk()) === '0', soon)
      await until(async () => (await list()).text.includes('key source: REJECTED'), soon)
      expect((await list()).code).toBe(1)
      expect(await published()).toEqual([kid])
      await put(first)
      await until(async () => (await sourceOk()) === '1', soon)
    }
    const output = gateway.output()
    expect(output).toContain('"msg":"given key refused"')
    expect(output).toContain('configuration change refused')
    for (const text of ['tls.key of the secret cloud-key holds an RSA key of 1024 bits', 'on the curve secp521r1']) {
      expect(output).toContain(text)
    }
    // Another valid one follows in the usual way.
    await put(goodKey('ES256'))
    await until(async () => (await published()).length === 2, soon)
    expect((await list()).text).toMatch(new RegExp(`next .*\\n.*active +${kid} ES256`))
  })

  test('that is invalid is rejected by check, and at the start the token service is set aside until it is replaced', {
    timeout,
  }, async () => {
    await put(badKeys().find(({ what }) => what === 'RSA for ES256')?.text ?? '')
    const args = ['check', '--config', `kubernetes:${namespace}`, '--kubeconfig', kubeconfig]
    const reason =
      'issuer.keypair: tls.key of the secret cloud-key holds a key that signs RS256, and the algorithm is ES256'
    await expect(run(gatehouse, args)).rejects.toMatchObject({ code: 1, stdout: expect.stringContaining(reason) })
    await gateway.stop()
    gateway = await start()
    await until(async () => gateway.output().includes(reason), soon)
    expect((await fetch(`${gateway.url}/sts/cloud/issuer-docs`)).status).toBe(503)
    await put(goodKey('ES256'))
    await until(async () => (await fetch(`${gateway.url}/sts/cloud/issuer-docs`)).status === 200, soon)
  })
})
