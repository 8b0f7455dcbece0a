import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest'
import { freshSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { type Slapd, startSlapd } from '#testing/ldap/slapd.ts'
import { coreUser, ScimClient } from '#testing/scim/scim-client.ts'
import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from '#testing/servers/otlp-receiver.ts'
import { startCallWorkflow } from '#testing/stories/call-workflow-story.ts'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const callerSpan = '00f067aa0ba902b7'
const traceparent = `00-${traceId}-${callerSpan}-01`
const long = 60_000

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function receive(behavior?: Parameters<typeof startOtlpReceiver>[0]): Promise<OtlpReceiver> {
  const receiver = await startOtlpReceiver(behavior)
  closers.push(() => receiver.close())
  return receiver
}

/** The names from a span up to the root of its trace. */
function pathOf(span: ReceivedSpan, spans: readonly ReceivedSpan[]): string[] {
  const parent = spans.find(({ spanId }) => spanId === span.parentSpanId)
  return parent === undefined ? [span.name] : [...pathOf(parent, spans), span.name]
}

describe.skipIf(inject('slapd') === '')('traces of a SCIM gateway with an LDAP target', () => {
  let slapd: Slapd
  beforeAll(async () => {
    slapd = await startSlapd({ adminPassword: 'example' })
  })
  afterAll(() => slapd?.stop())

  async function start(
    endpoint: string,
    { args = [], environment = {} }: Pick<StartOptions, 'args' | 'environment'> = {},
  ) {
    const gateway = await startGatewayProcess({
      config: 'examples/ldap-target',
      args,
      environment: {
        LDAP_URL: slapd.url,
        LDAP_BASE: slapd.baseDn,
        OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
        OTEL_SERVICE_NAME: 'story',
        ...environment,
      },
    })
    closers.push(() => gateway.stop())
    const token = await gateway.token('--subject', 'idp')
    return { gateway, token, scim: new ScimClient(`${gateway.url}/scim/directory`, token) }
  }
  type StartOptions = Parameters<typeof startGatewayProcess>[0]

  const grace = {
    schemas: [coreUser],
    userName: 'grace',
    name: { givenName: 'Grace', familyName: 'Hopper', formatted: 'Grace Hopper' },
    emails: [{ value: 'grace@example.com' }],
  }
  let created = 0
  const create = (scim: ScimClient, userName = `user${++created}`) =>
    scim.call('POST', '/Users', { ...grace, userName }, { traceparent, tracestate: 'vendor=1' })

  test('a create is one tree: request, filter, workflow, step, target, LDAP operation and SQL statements', async () => {
    const receiver = await receive()
    const { gateway, scim, token } = await start(receiver.url, { args: ['--trusted-proxy', '127.0.0.1'] })
    const answer = await create(scim, 'grace')
    expect(answer.status, JSON.stringify(answer.body)).toBe(201)
    expect(await gateway.stop()).toBe(0)

    const spans = receiver.spans.filter((span) => span.traceId === traceId)
    const request = spans.find(({ parentSpanId }) => parentSpanId === callerSpan)
    expect(request).toMatchObject({
      name: 'POST /scim/directory',
      kind: 2,
      failed: false,
      attributes: {
        'http.request.method': 'POST',
        'http.route': '/scim/directory',
        'http.response.status_code': 201,
        'gatehouse.application': 'scim-directory',
      },
      resource: { 'service.name': 'story' },
    })
    const paths = spans.map((span) => pathOf(span, spans))
    // Every span leads to the request, so nothing is lost or in another tree.
    expect(paths.filter(([root]) => root !== 'POST /scim/directory')).toEqual([])
    // The gateway asks its own issuer for keys, and passes the trace on.
    expect(paths).toContainEqual(['POST /scim/directory', 'GET', 'GET /dev-issuer'])
    const add = spans.find(({ name }) => name === 'LDAP add')
    expect(add?.attributes).toMatchObject({
      'network.protocol.name': 'ldap',
      'server.address': '127.0.0.1',
      'server.port': Number(new URL(slapd.url).port),
    })
    expect(paths).toContainEqual([
      'POST /scim/directory',
      'filter filters.ScimGateway',
      'workflow directory-sync',
      'step provision',
      expect.stringMatching(/^target directory \w+$/),
      'LDAP add',
    ])
    const statements = spans.filter(({ attributes }) => attributes['db.query.text'] !== undefined)
    const insert = statements.find(({ name }) => name.startsWith('insert audit'))
    expect(insert?.attributes).toMatchObject({
      'db.system.name': 'sqlite',
      'db.query.text': expect.stringMatching(/^insert into audit.*\?/s),
    })
    expect(insert && pathOf(insert, spans)).toContain('workflow directory-sync')
    const step = spans.find(({ name }) => name === 'step provision')
    expect(step?.attributes).toMatchObject({ 'gatehouse.task.type': 'provision', 'gatehouse.outcome': 'next' })

    // Nothing that a user or a secret consists of.
    for (const secret of ['grace', 'Grace', 'Hopper', token, answer.body.id, 'cn=admin', '"example"']) {
      expect(receiver.text).not.toContain(secret)
    }
    const line = gateway
      .output()
      .split('\n')
      .find((text) => text.includes('"msg":"request"') && text.includes('"status":201'))
    expect(JSON.parse(line ?? '{}')).toMatchObject({ trace_id: traceId, span_id: request?.spanId })
  })

  test('a caller that is not a trusted proxy gets its own trace, with a link, and cannot have it recorded', async () => {
    const receiver = await receive()
    const { gateway, scim } = await start(receiver.url)
    expect((await create(scim)).status).toBe(201)
    expect(await gateway.stop()).toBe(0)
    const request = receiver.spans.find(({ name }) => name === 'POST /scim/directory')
    expect(request?.traceId).not.toBe(traceId)
    expect(request?.parentSpanId).toBeUndefined()
    expect(request?.links).toEqual([{ traceId, spanId: callerSpan }])
    expect(receiver.spans.filter((span) => span.traceId === traceId)).toEqual([])

    const other = await receive()
    const sparse = await start(other.url, { environment: { OTEL_TRACES_SAMPLER: 'parentbased_always_off' } })
    expect((await create(sparse.scim)).status).toBe(201)
    expect(await sparse.gateway.stop()).toBe(0)
    expect(other.spans).toEqual([])
    // Its log still has trace ids, since other services may record the trace.
    expect(sparse.gateway.output()).toMatch(/"status":201.*"trace_id":"[0-9a-f]{32}"/)
  })

  test('a receiver that hangs or is gone costs spans, and neither answers nor the shutdown', async () => {
    const hanging = await receive('hangs')
    const slow = await start(hanging.url)
    expect((await create(slow.scim)).status).toBe(201)
    await until(async () => hanging.requests.length === 1, long)
    // The exporter waits for its answer, and no request does.
    expect((await create(slow.scim)).status).toBe(201)
    expect(await slow.gateway.stop()).toBe(0)
    expect(hanging.requests).toHaveLength(1)

    const gone = await startOtlpReceiver()
    await gone.close()
    const { gateway, scim } = await start(gone.url)
    expect((await create(scim)).status).toBe(201)
    const dropped = async (): Promise<number> => metric(gateway, 'gatehouse_trace_spans_total{outcome="dropped"}')
    await until(async () => (await dropped()) > 0, long)
    expect((await create(scim)).status).toBe(201)
    expect(await gateway.stop()).toBe(0)
    expect(gateway.output().match(/traces cannot be sent/g)).toHaveLength(1)
  })

  test('the health page names the target that is down, exemplars name traces, and the gateway stays ready', async () => {
    const receiver = await receive()
    const { gateway, scim } = await start(receiver.url, { args: ['--trusted-proxy', '127.0.0.1'] })
    expect((await create(scim)).status).toBe(201)
    const accept = 'application/openmetrics-text;version=1.0.0,text/plain;q=0.5'
    const metrics = await fetch(`${gateway.metricsUrl}/metrics`, { headers: { accept } })
    expect(metrics.headers.get('content-type')).toContain('application/openmetrics-text')
    expect(await metrics.text()).toMatch(
      new RegExp(`gatehouse_http_request_seconds_bucket\\{.*application="scim-directory".*trace_id="${traceId}"`),
    )
    const health = async () =>
      (await (await fetch(`${gateway.metricsUrl}/health`)).json()) as { readonly status: string }
    const issuers = [{ issuer: `${gateway.url}/dev-issuer`, health: 'up', time: expect.any(String) }]
    expect(await health()).toMatchObject({ status: 'up', targets: [{ name: 'directory', health: 'up' }], issuers })
    await slapd.kill()
    await until(async () => (await health()).status === 'degraded', long)
    expect(await health()).toMatchObject({
      gateway: { health: 'up' },
      targets: [{ name: 'directory', health: 'down', problem: expect.any(String) }],
    })
    expect((await fetch(`${gateway.url}/ready`)).status).toBe(200)
    expect((await fetch(`${gateway.url}/check_alive`)).status).toBe(200)
    expect((await fetch(`${gateway.url}/health`)).status).toBe(404)
    expect((await scim.get('/Users?filter=userName%20eq%20%22grace%22')).status).toBe(503)
    expect(
      await metric(gateway, 'gatehouse_target_failures_total{target="directory",code="TARGET_UNREACHABLE"}'),
    ).toBeGreaterThan(0)
  })
})

async function metric({ metricsUrl }: GatewayProcess, line: string): Promise<number> {
  const text = await (await fetch(`${metricsUrl}/metrics`)).text()
  const found = text.split('\n').find((one) => one.startsWith(`${line} `))
  return Number(found?.slice(line.length) ?? 0)
}

describe('traces of stored runs on SQLite', () => storedRuns())
describe.skipIf(postgresUrl() === '')('traces of stored runs on PostgreSQL', () => storedRuns(freshSchema))

function storedRuns(databaseUrl?: () => Promise<string>): void {
  test('a run that a worker executes has a trace of its own, linked to the request', async () => {
    const receiver = await receive()
    const gateway = await startCallWorkflow(await databaseUrl?.(), { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url })
    closers.push(() => gateway.close())
    const response = await fetch(`${gateway.process.url}/story`, {
      method: 'POST',
      headers: { authorization: `Bearer ${await gateway.token('svc')}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        name: 'onboard',
        uidAttributeName: 'uid',
        user: { attributes: [{ name: 'uid', values: ['linus'] }] },
        requestParams: { team: 'blue', 'UNISON.EXEC.TYPE': 'UNISON.EXEC.ASYNC' },
      }),
    })
    expect(response.status, await response.clone().text()).toBeLessThan(300)
    const named = (name: string) => receiver.spans.find((span) => span.name === name)
    await until(async () => named('workflow onboard') !== undefined && named('POST /story') !== undefined, long)
    const [run, request] = [named('workflow onboard'), named('POST /story')]
    expect(run).toMatchObject({ kind: 5, parentSpanId: undefined, failed: false })
    expect(run?.traceId).not.toBe(request?.traceId)
    const cause = receiver.spans.find(({ spanId }) => spanId === run?.links[0]?.spanId)
    expect(cause?.traceId).toBe(request?.traceId)
    expect(cause && pathOf(cause, receiver.spans)[0]).toBe('POST /story')
    const below = receiver.spans.filter((span) => span.traceId === run?.traceId)
    expect(below.map((span) => pathOf(span, below)[0])).toEqual(below.map(() => 'workflow onboard'))
    expect(below.map(({ name }) => name)).toContain('step provision')
    expect(below.map(({ attributes }) => attributes['db.system.name'])).toContain(
      databaseUrl === undefined ? 'sqlite' : 'postgresql',
    )
  })
}
