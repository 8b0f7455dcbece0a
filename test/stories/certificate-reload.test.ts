import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { freshCertificate, testServerCertificate } from '#testing/gateway/test-certificates.ts'
import { exchangeOverTls, replaceCertificate, startExchanges } from '#testing/sts/exchanges-over-tls.ts'
import { SigningCluster } from '#testing/sts/signing-cluster.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-certificates-'))
const soon = { timeout: 60_000, interval: 100 }
let cluster: SigningCluster
let gateway: GatewayProcess

beforeAll(async () => {
  cluster = await SigningCluster.start()
  const params = { url: cluster.api.url, token: 'reviewer' }
  const spec = { className: 'targets.Kubernetes', params }
  const target = { apiVersion: 'openunison.tremolo.io/v1', kind: 'Target', metadata: { name: 'k8s' }, spec }
  writeFileSync(join(folder, 'cluster.yaml'), JSON.stringify(target))
  const endpoint = {
    name: 'aws',
    audience: 'https://aws.example.com',
    path: '/sts/aws',
    azRules: [{ scope: 'filter', constraint: '(namespace=shop)' }],
    issuer: { host: 'issuer.example.com' },
    rateLimit: { burst: 1000, perMinute: 60_000 },
  }
  writeFileSync(join(folder, 'values.yaml'), JSON.stringify({ sts: { endpoints: [endpoint] } }))
  gateway = await startGatewayProcess({ config: folder, tls: true })
})

afterAll(async () => {
  await gateway?.stop()
  await cluster?.close()
  rmSync(folder, { recursive: true, force: true })
})

const url = (): string => `${gateway.url}/sts/aws/token`

async function metric(name: string): Promise<number> {
  const text = await (await fetch(`${gateway.metricsUrl}/metrics`)).text()
  return Number(new RegExp(`^${name}\\{listener="public"\\} (\\S+)$`, 'm').exec(text)?.[1])
}

describe('a certificate that is replaced under load', () => {
  it('is served to new connections, and no call fails', async () => {
    const subjectToken = await cluster.token()
    const [second, third] = [freshCertificate(), freshCertificate()]
    const load = startExchanges(url(), subjectToken, [testServerCertificate, second.authority, third.authority])
    const serials = (): readonly string[] => [...new Set(load.answers.new.map(({ serial }) => serial))]
    await vi.waitFor(() => expect(serials()).toHaveLength(1), soon)
    // Each of the two kept connections is open by then.
    await vi.waitFor(() => expect(load.answers.kept.length).toBeGreaterThan(20), soon)
    replaceCertificate(gateway.dataFolder, second)
    await vi.waitFor(() => expect(serials()).toHaveLength(2), soon)
    replaceCertificate(gateway.dataFolder, third)
    gateway.process.kill('SIGHUP')
    await vi.waitFor(() => expect(serials()).toHaveLength(3), soon)
    const before = load.answers.kept.length
    await vi.waitFor(() => expect(load.answers.kept.length).toBeGreaterThan(before + 4), soon)
    await load.stop()
    expect(load.failures).toEqual([])
    // Kept connections continue unchanged.
    expect(new Set(load.answers.kept.map(({ serial }) => serial)).size).toBe(1)
    const { status } = await exchangeOverTls(url(), subjectToken, [third.authority], false)
    expect(status).toBe(200)
    await expect(exchangeOverTls(url(), subjectToken, [testServerCertificate], false)).rejects.toThrow('certificate')
  }, 200_000)

  it('is not served with the wrong key: log and metrics report it, and the old one stays', async () => {
    const good = freshCertificate()
    replaceCertificate(gateway.dataFolder, good)
    gateway.process.kill('SIGHUP')
    const subjectToken = await cluster.token()
    const answered = (ca: string) => exchangeOverTls(url(), subjectToken, [ca], false).then(({ status }) => status)
    await vi.waitFor(() => expect(answered(good.authority)).resolves.toBe(200), soon)
    const expires = await metric('gatehouse_tls_certificate_expiry_timestamp_seconds')
    expect(expires * 1000 - Date.now()).toBeGreaterThan(89 * 86_400_000)
    await vi.waitFor(async () => expect(await metric('gatehouse_tls_certificate_current')).toBe(1), soon)

    replaceCertificate(gateway.dataFolder, { ...freshCertificate(), privateKey: good.privateKey })
    gateway.process.kill('SIGHUP')
    await vi.waitFor(async () => expect(await metric('gatehouse_tls_certificate_current')).toBe(0), soon)
    expect(await answered(good.authority)).toBe(200)
    expect(await metric('gatehouse_tls_certificate_expiry_timestamp_seconds')).toBe(expires)
    await vi.waitFor(() => expect(gateway.output()).toContain('a new certificate cannot be used'), soon)
    expect(gateway.output()).toContain('the private key is not that of the certificate')
    expect(gateway.output()).not.toContain(
      readFileSync(join(gateway.dataFolder, 'listener-key.pem'), 'utf8').slice(30, 90),
    )
  }, 200_000)
})
