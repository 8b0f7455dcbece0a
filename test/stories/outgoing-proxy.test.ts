import { spawn } from 'node:child_process'
import { cpSync, writeFileSync } from 'node:fs'
import https from 'node:https'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import process from 'node:process'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { authoritiesOf, renewWebhookTls } from '#protocols/admission/webhook-tls.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { type GatewayProcess, gatehouse, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { freshCertificate } from '#testing/gateway/test-certificates.ts'
import { type ForwardProxy, startForwardProxy } from '#testing/servers/forward-proxy.ts'

const tls = renewWebhookTls(undefined, ['audit.example.com'], new Date())

/** A receiver of the audit whose name only the proxy knows. */
async function startReceiver(): Promise<{ readonly port: number; readonly tokens: ReadonlySet<string | undefined> }> {
  const tokens = new Set<string | undefined>()
  const options = { cert: tls.server.certificate, key: tls.server.privateKey }
  const server = https.createServer(options, (request, response) => {
    request.resume()
    tokens.add(`${request.headers.authorization} ${request.headers['proxy-authorization']}`)
    response.writeHead(204).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close().closeAllConnections())
  return { port: (server.address() as AddressInfo).port, tokens }
}

const proxyTls = freshCertificate()

async function startProxy(target: number, login: string, scheme = 'http'): Promise<ForwardProxy> {
  const secure = { tls: { cert: proxyTls.certificate, key: proxyTls.privateKey } }
  const proxy = await startForwardProxy({ target, login, ...(scheme === 'https' ? secure : {}) })
  onTestFinished(() => proxy.close())
  return proxy
}

const sink = `
apiVersion: openunison.tremolo.io/v1
kind: AuditSink
metadata: { name: siem }
spec:
  className: auditSinks.Https
  params: { url: "https://audit.example.com/in", caFile: ca.pem, token: receiver-token }
`

function configuration(): string {
  const config = join(temporaryFolder(), 'config')
  cpSync('examples/call-workflow', config, { recursive: true })
  writeFileSync(join(config, 'audit.yaml'), sink)
  writeFileSync(join(config, 'ca.pem'), authoritiesOf(tls))
  return config
}

/** A gateway with an entry in its audit. */
async function startAudited(environment: Record<string, string>): Promise<GatewayProcess> {
  const gateway = await startGatewayProcess({ config: configuration(), environment })
  onTestFinished(async () => void (await gateway.stop()))
  const token = await gateway.token('--subject', 'svc', '--claim', 'role=workflow-caller')
  const response = await fetch(`${gateway.url}/call-workflow`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      name: 'onboard',
      uidAttributeName: 'uid',
      user: { attributes: [{ name: 'uid', values: ['grace'] }] },
      requestParams: { team: 'blue' },
    }),
  })
  expect(response.status).toBe(200)
  return gateway
}

/** The lines of `doctor` about a SCIM service behind a proxy. */
async function diagnosed(proxy: string, seconds = 20): Promise<string[]> {
  const config = temporaryFolder()
  writeFileSync(
    join(config, 'target.yaml'),
    `
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: crm }
spec: { className: targets.Scim, params: { url: "https://audit.example.com/scim", caFile: ca.pem, token: secret } }
`,
  )
  writeFileSync(join(config, 'ca.pem'), authoritiesOf(tls))
  const doctor = spawn(
    gatehouse,
    ['doctor', '--config', config, '--data', join(config, 'data'), '--timeout', String(seconds)],
    {
      env: { ...process.env, HTTPS_PROXY: proxy },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  const lines = (await text(doctor.stdout)).split('\n')
  return lines.filter((line) => line.includes(' target '))
}

test('doctor names the proxy of a target, dead or alive', async () => {
  const [dead] = await diagnosed('http://user:hunter2@127.0.0.1:1')
  expect(dead).toMatch(/^PROBLEM target crm: .*the proxy http:\/\/127\.0\.0\.1:1 .*ECONNREFUSED/)
  expect(dead).toContain('Check the proxy, which HTTPS_PROXY names.')
  expect(dead).not.toContain('hunter2')
  const service = https.createServer({ cert: tls.server.certificate, key: tls.server.privateKey }, (_, response) => {
    const schemas = ['urn:ietf:params:scim:api:messages:2.0:ListResponse']
    response.setHeader('content-type', 'application/scim+json')
    response.end(JSON.stringify({ schemas, totalResults: 0, Resources: [] }))
  })
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void service.close().closeAllConnections())
  const proxy = await startForwardProxy({ target: (service.address() as AddressInfo).port })
  onTestFinished(() => proxy.close())
  const [alive] = await diagnosed(`http://127.0.0.1:${proxy.port}`)
  expect(alive).toMatch(
    new RegExp(
      `^OK +target crm: .* answered a look-up in \\d+ ms \\(through the proxy http://127.0.0.1:${proxy.port}\\)$`,
    ),
  )
})

test('doctor names a proxy that never answers', async () => {
  const silent = createTcpServer()
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void silent.close())
  const { port } = silent.address() as AddressInfo
  const [line] = await diagnosed(`http://127.0.0.1:${port}`, 5)
  expect(line).toMatch(/^PROBLEM target crm: /)
  expect(line).toContain(`the proxy http://127.0.0.1:${port}`)
})

test.each(['http', 'https'])(
  'a gateway reaches the outside by %s through the proxy of its environment, which alone gets its password',
  async (scheme) => {
    const receiver = await startReceiver()
    const authorityFile = join(temporaryFolder(), 'proxy-ca.pem')
    writeFileSync(authorityFile, proxyTls.authority)
    const proxy = await startProxy(receiver.port, 'gatehouse:hunter2', scheme)
    const environment = {
      HTTPS_PROXY: `${scheme}://gatehouse:hunter2@127.0.0.1:${proxy.port}`,
      NO_PROXY: '.internal',
      NODE_EXTRA_CA_CERTS: authorityFile,
    }
    const gateway = await startAudited(environment)
    await until(async () => receiver.tokens.size > 0, 60_000)
    expect([...receiver.tokens]).toEqual(['Bearer receiver-token undefined'])
    expect(proxy.seen[0]).toBe('CONNECT audit.example.com:443')
    const way = `Outgoing calls: https: through ${scheme}://127.0.0.1:${proxy.port} (HTTPS_PROXY), http: directly; NO_PROXY has exceptions.`
    expect(gateway.output()).toContain(way)
    expect(gateway.output()).not.toContain('hunter2')
  },
)

test('the log names a proxy that refuses the gateway, without the password', async () => {
  const proxy = await startProxy(1, 'gatehouse:another')
  const environment = { https_proxy: `http://gatehouse:hunter2@127.0.0.1:${proxy.port}` }
  const gateway = await startAudited(environment)
  const reason = `the proxy http://127.0.0.1:${proxy.port} opened no connection to audit.example.com:443: it wants another`
  await until(async () => gateway.output().includes(reason), 60_000)
  expect(gateway.output()).not.toMatch(/hunter2|Z2F0ZWhvdXNl/)
})

test('a gateway with a proxy that it cannot use does not start', async () => {
  const environment = { HTTPS_PROXY: 'socks5://gatehouse:hunter2@127.0.0.1:1' }
  const start = startGatewayProcess({ config: configuration(), environment })
  const error = await start.catch((thrown: unknown) => thrown)
  expect(String(error)).toContain(
    'gatehouse serve: HTTPS_PROXY names a proxy of the kind socks5:; use an http: or https: proxy',
  )
  expect(String(error)).not.toContain('hunter2')
})
