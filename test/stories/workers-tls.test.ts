import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { CertificateWithKey } from '#config/configuration/sts-webhook.ts'
import { freshSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { freePort } from '#testing/gateway/free-port.ts'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { freshCertificate, testServerCertificate } from '#testing/gateway/test-certificates.ts'
import { replaceCertificate } from '#testing/sts/exchanges-over-tls.ts'

const long = 60_000
/** Opened at the same time, so that one worker does not accept all. */
const connections = 24

interface Answer {
  readonly status: number | undefined
  readonly requestId: string
}

/** Over a connection of its own that trusts only this authority. */
const call = (url: string, ca: string, method: string, body = ''): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const options = { method, ca, agent: false, headers: { 'content-type': 'application/json' } } as const
    const sent = request(url, { ...options, signal: AbortSignal.timeout(long) }, (response) => {
      expect((response.socket as TLSSocket).authorized).toBe(true)
      const requestId = String(response.headers['x-request-id'])
      response
        .resume()
        .once('end', () => resolve({ status: response.statusCode, requestId }))
        .once('error', reject)
    })
    sent.once('error', reject).end(body)
  })

const review = JSON.stringify({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  request: {
    uid: '1',
    namespace: 'shop',
    operation: 'CREATE',
    kind: { group: '', version: 'v1', kind: 'Pod' },
    object: { metadata: { namespace: 'shop' }, spec: { containers: [{ name: 'app' }] } },
  },
})

describe.skipIf(postgresUrl() === '')('two workers with TLS and the webhook of the injector', () => {
  let folder: string
  let gateway: GatewayProcess
  let webhookUrl: string

  const writeWebhook = ({ certificate, privateKey }: CertificateWithKey): void => {
    writeFileSync(join(folder, 'webhook.pem'), certificate)
    writeFileSync(join(folder, 'webhook-key.pem'), privateKey, { mode: 0o600 })
  }

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'gatehouse-config-'))
    const spec = { className: 'targets.Kubernetes', params: { url: 'https://127.0.0.1:1', token: 'none' } }
    const target = { apiVersion: 'openunison.tremolo.io/v1', kind: 'Target', metadata: { name: 'k8s' }, spec }
    const port = await freePort()
    webhookUrl = `https://127.0.0.1:${port}/sts/inject`
    const webhook = { listen: `127.0.0.1:${port}`, certFile: 'webhook.pem', keyFile: 'webhook-key.pem' }
    const endpoint = {
      name: 'aws',
      audience: 'sts.amazonaws.com',
      path: '/sts/aws',
      azRules: [{ scope: 'filter', constraint: '(namespace=shop)' }],
      issuer: { host: 'issuer.example.com' },
      injector: { label: 'aws', token_environment_variable_name: 'AWS_WEB_IDENTITY_TOKEN_FILE' },
    }
    const sts = { injector: { tokenService: 'https://sts.example.com', webhook }, endpoints: [endpoint] }
    writeFileSync(join(folder, 'cluster.yaml'), JSON.stringify(target))
    writeFileSync(join(folder, 'values.yaml'), JSON.stringify({ sts }))
    const args = ['--database', await freshSchema(), '--workers', '2']
    writeWebhook(first)
    gateway = await startGatewayProcess({ config: folder, tls: true, args })
    await until(async () => (await metrics()).includes('gatehouse_workers{state="ready"} 2'), long)
  })
  afterAll(async () => {
    await gateway?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const first = freshCertificate()
  const metrics = async (): Promise<string> => (await fetch(`${gateway.metricsUrl}/metrics`)).text()
  const workerOf = (id: string): number | undefined => {
    const line = gateway
      .output()
      .split('\n')
      .find((one) => one.includes(id))
    return line === undefined ? undefined : (JSON.parse(line) as { readonly worker?: number }).worker
  }

  /** The status codes of answers from both workers over connections that trust only this authority. */
  async function statusesOfBoth(one: () => Promise<Answer>): Promise<readonly (number | undefined)[]> {
    const answers: Answer[] = []
    await until(async () => {
      answers.push(...(await Promise.all(Array.from({ length: connections }, one))))
      await until(async () => answers.every(({ requestId }) => workerOf(requestId) !== undefined), long)
      return new Set(answers.map(({ requestId }) => workerOf(requestId))).size === 2
    }, long)
    return [...new Set(answers.map(({ status }) => status))]
  }
  /** Until no connection gets another certificate: both workers have served the new one by then. */
  const isServed = async (one: () => Promise<Answer>): Promise<void> => {
    await until(async () => {
      const all = await Promise.allSettled(Array.from({ length: connections }, one))
      return all.every(({ status }) => status === 'fulfilled')
    }, long)
  }

  test('both answer over HTTPS, and serve a certificate that is replaced', async () => {
    const nowhere = (ca: string) => () => call(`${gateway.url}/nowhere`, ca, 'GET')
    expect(await statusesOfBoth(nowhere(testServerCertificate))).toEqual([404])
    const next = freshCertificate()
    replaceCertificate(gateway.dataFolder, next)
    gateway.process.kill('SIGHUP')
    await isServed(nowhere(next.authority))
    expect(await statusesOfBoth(nowhere(next.authority))).toEqual([404])
    await expect(nowhere(testServerCertificate)()).rejects.toThrow('certificate')
    expect(await metrics()).toContain('gatehouse_tls_certificate_current{listener="public"} 1\n')
  })

  test('both answer API servers, and serve a certificate that is replaced', async () => {
    const inject = (ca: string) => () => call(webhookUrl, ca, 'POST', review)
    expect(await statusesOfBoth(inject(first.authority))).toEqual([200])
    const next = freshCertificate()
    writeWebhook(next)
    gateway.process.kill('SIGHUP')
    await isServed(inject(next.authority))
    expect(await statusesOfBoth(inject(next.authority))).toEqual([200])
    await expect(inject(first.authority)()).rejects.toThrow('certificate')
  })
})
