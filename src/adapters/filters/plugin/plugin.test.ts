import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { entryIdentity } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import { type Logger, silentLogger } from '#kernel/logger.ts'
import type { Filter } from '#sdk/filter/filter.ts'
import type { GatewayRequest, GatewayResponse } from '#sdk/http/http.ts'
import { sampled } from '#testing/hostile/sample.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { type FakeRequest, fakeRequest } from '#testing/modules/fake-request.ts'
import plugin from './plugin.ts'

const opened: Filter[] = []
const subject = {
  dn: Dn.parse('uid=ada,o=Tremolo'),
  identity: entryIdentity('test', 'ada'),
  uid: 'ada',
  attributes: Attributes.from({ mail: ['a@x.test'] }),
  level: 20,
  chain: 'login',
}

afterEach(async () => {
  await Promise.all(opened.splice(0).map((filter) => filter.close?.()))
})

function prepare(params: ParamValues) {
  const issues = noIssues()
  return { issues, prepared: plugin.prepare(fakeParams(params), issues, fakeParseContext()) }
}

async function open(javaScript: string, params: ParamValues = {}, log: Logger = silentLogger): Promise<Filter> {
  const { issues, prepared } = prepare({ javaScript, ...params })
  expect(issueTexts(issues.list)).toEqual([])
  const filter = await prepared.create({ ...fakeModuleHost(), log })
  opened.push(filter)
  return filter
}

const behind: GatewayResponse = {
  status: 200,
  headers: { 'Content-Type': 'text/html', 'Set-Cookie': 'a=1', 'x-own': 'kept' },
  body: 'behind',
}

async function ask(filter: Filter, given: FakeRequest | GatewayRequest = {}): Promise<GatewayResponse> {
  const request = 'signal' in given ? given : fakeRequest(given)
  return filter.handle({ request, application: 'app', mount: '/m', pathInfo: '/p', subject }, async () => behind)
}

const returning = (expression: string): string => `function handle(request, context) { return ${expression} }`

/** Many values at a time, since each takes a round trip between two processes. */
const inBatches = <T>(values: fc.Arbitrary<T>, check: (value: T) => Promise<void>): Promise<void> =>
  fc.assert(
    fc.asyncProperty(fc.array(values, { minLength: 50, maxLength: 50 }), async (batch) => {
      await Promise.all(batch.map(check))
    }),
    { numRuns: sampled(5, 20) },
  )

describe("the function's input", () => {
  test('is the request, its mount and the caller, but no credentials', async () => {
    const filter = await open(returning('{ status: 200, json: { request, context } }'))
    const headers = { Authorization: 'Bearer s3cret', Cookie: 's=s3cret', 'Proxy-Authorization': 's3cret', 'X-A': 'b' }
    const url = 'http://h.test/m/p?a=1&a=2&__proto__=x&b='
    const { body } = await ask(filter, { method: 'POST', url, headers, body: 'ä\u0000\u2028"' })
    expect(JSON.parse(String(body))).toEqual({
      request: {
        id: 'request-1',
        method: 'POST',
        origin: 'http://h.test',
        host: 'h.test',
        path: '/m/p',
        query: { a: ['1', '2'], b: [''] },
        headers: { 'x-a': ['b'] },
        remoteAddress: '127.0.0.1',
        body: 'ä\u0000\u2028"',
        bodyBase64: null,
      },
      context: {
        application: 'app',
        mount: '/m',
        pathInfo: '/p',
        subject: {
          dn: 'uid=ada,o=Tremolo',
          uid: 'ada',
          attributes: { mail: ['a@x.test'] },
          level: 20,
          chain: 'login',
        },
      },
    })
    expect(String(body)).not.toContain('s3cret')
  })

  test('any body arrives as sent, and returns unchanged', async () => {
    const filter = await open(
      returning(`request.body === null
        ? { status: 200, bodyBase64: request.bodyBase64 }
        : { status: 200, body: request.body }`),
    )
    const comesBack = async (content: Uint8Array | string): Promise<void> => {
      const sent = Buffer.from(content as string)
      const { body } = await ask(filter, { body: sent })
      expect(Buffer.from(body as string)).toEqual(sent)
    }
    const content = fc.oneof(fc.uint8Array({ maxLength: 200 }), fc.string({ unit: 'binary' }))
    await inBatches(content, comesBack)
  }, 30_000)

  test('hostile values of queries and headers arrive unchanged', async () => {
    const filter = await open(returning('{ status: 200, json: [request.query.v, request.headers["x-v"]] }'))
    const comesThrough = async (value: string): Promise<void> => {
      const request = { ...fakeRequest({ headers: { 'x-v': value } }), query: new URLSearchParams([['v', value]]) }
      const { body } = await ask(filter, request)
      expect(JSON.parse(String(body))).toEqual([request.query.getAll('v'), [value]])
    }
    await inBatches(fc.string({ unit: 'binary' }), comesThrough)
  }, 30_000)

  test('at most the limit of a body is read, and nothing if it is 0', async () => {
    const asked: (number | undefined)[] = []
    const request: GatewayRequest = {
      ...fakeRequest({}),
      body: async (limit) => {
        asked.push(limit)
        throw new GatewayError('BODY_TOO_LARGE', 'too long')
      },
    }
    const limited = await open(returning('{ status: 200 }'), { maxBodyKilobytes: '2' })
    await expect(ask(limited, request)).rejects.toMatchObject({ code: 'BODY_TOO_LARGE' })
    expect(asked).toEqual([2048])
    const without = await open(returning('{ status: 200, json: [request.body, request.bodyBase64] }'), {
      maxBodyKilobytes: '0',
    })
    expect((await ask(without, request)).body).toBe('[null,null]')
    expect(asked).toEqual([2048])
  })

  test('includes the parameters and the log', async () => {
    const lines: unknown[] = []
    const log: Logger = { ...silentLogger, warn: (_, fields) => void lines.push(fields?.['text']) }
    const filter = await open(
      `let color
       function init(config) { color = config.color[0] }
       function handle(request, context) { context.log.warn(color); return { status: 204 } }`,
      { color: 'red' },
      log,
    )
    expect(await ask(filter)).toEqual({ status: 204, headers: {} })
    expect(lines).toEqual(['red'])
  })
})

describe("the function's answer", () => {
  test.each([
    [
      '{ status: 201, headers: { "X-A": "b", "set-cookie": ["a=1", "b=2"] }, body: "text" }',
      { 'content-type': 'text/plain; charset=utf-8', 'x-a': 'b', 'set-cookie': ['a=1', 'b=2'] },
      'text',
    ],
    ['{ status: 201, json: { a: [1] } }', { 'content-type': 'application/json; charset=utf-8' }, '{"a":[1]}'],
    ['{ status: 201, json: null, headers: { "Content-Type": "a/b" } }', { 'content-type': 'a/b' }, 'null'],
  ])('is a response: %s', async (expression, headers, body) => {
    expect(await ask(await open(returning(expression)))).toEqual({ status: 201, headers, body })
  })

  test('or passes on, and may set headers of the response', async () => {
    expect(await ask(await open(returning('{ next: true }')))).toEqual(behind)
    const filter = await open(
      returning('{ next: true, headers: { "content-type": "a/b", "set-cookie": "b=2", "x-new": "c" } }'),
    )
    expect(await ask(filter)).toEqual({
      status: 200,
      headers: { 'content-type': 'a/b', 'set-cookie': ['a=1', 'b=2'], 'x-own': 'kept', 'x-new': 'c' },
      body: 'behind',
    })
  })

  /** One process has them all, since each takes longer to start than to answer. */
  const wrong: readonly [string, RegExp][] = [
    ['undefined', /must be an object/],
    ['null', /must be an object/],
    ['true', /must be an object/],
    ['"next"', /must be an object/],
    ['{}', /status must be a whole number/],
    ['{ next: false }', /next must be true/],
    ['{ next: 1 }', /next must be true/],
    ['{ next: true, status: 403 }', /unknown field "status"/],
    ['{ status: "200" }', /status/],
    ['{ status: 101 }', /status/],
    ['{ status: 600 }', /status/],
    ['{ status: 200.5 }', /status/],
    ['{ status: 200, text: "x" }', /unknown field "text"/],
    ['{ status: 200, body: 1 }', /body must be a text/],
    ['{ status: 200, body: "", json: 1 }', /one of body, json, bodyBase64/],
    ['{ status: 204, body: "x" }', /has no body/],
    ['{ status: 200, headers: { "x-a": "b\\r\\nx-c: d" } }', /not allowed/],
    ['{ status: 200, headers: { "x a": "b" } }', /not allowed/],
    ['{ status: 200, headers: { "": "b" } }', /not allowed/],
    ['{ status: 200, headers: { "x-a": 1 } }', /list of texts/],
    ['{ status: 200, headers: { "Content-Length": "1" } }', /cannot be set/],
    ['{ status: 200, headers: { "transfer-encoding": "chunked" } }', /cannot be set/],
    ['{ status: 200, headers: { ["__proto__"]: "x" } }', /cannot be set/],
    ['{ status: 200, headers: { constructor: "x" } }', /cannot be set/],
    ['{ status: 200, headers: { "x-a": "b", "X-A": "c" } }', /twice/],
    ['{ status: 200, headers: { "x-a": "b".repeat(20000) } }', /too many headers/],
    ['{ status: 200, headers: { "x-a": Array(65).fill("b") } }', /too many headers/],
  ]
  let returnsWrong: Filter
  beforeAll(async () => {
    returnsWrong = await open(
      returning(`[${wrong.map(([one]) => `() => (${one})`).join()}][request.headers['x-answer'][0]]()`),
    )
    opened.splice(0)
  })
  afterAll(() => returnsWrong.close?.())
  test.each(wrong)(
    'fails the request if it is anything else, and reaches nothing behind: %s',
    async (expression, message) => {
      const answer = String(wrong.findIndex(([one]) => one === expression))
      await expect(ask(returnsWrong, { headers: { 'x-answer': answer } })).rejects.toMatchObject({
        code: 'TARGET_FAILED',
        message: expect.stringMatching(message),
      })
    },
  )

  test.each([
    ['throw new Error("no")', 'TARGET_FAILED'],
    ['throw Object.assign(new Error("no"), { code: "unreachable" })', 'TARGET_UNREACHABLE'],
    ['throw Object.assign(new Error("no"), { code: "badRequest" })', 'BAD_REQUEST'],
    ['process.exit(0)', 'TARGET_FAILED'],
    ['for (;;) {}', 'TARGET_TIMEOUT'],
  ])('a failure is reported: %s', async (body, code) => {
    const filter = await open(
      `function handle(request) { if (request.path === '/bad') { ${body} } return { next: true } }`,
      {
        timeoutSeconds: '1',
      },
    )
    await expect(ask(filter, { url: 'http://localhost/bad' })).rejects.toMatchObject({ code })
    expect((await ask(filter)).status).toBe(200)
  })
})

test('unusable code is rejected', async () => {
  await expect(open('function other() {}')).rejects.toThrow(/no function handle/)
  await expect(open(`function init() { throw new Error('not so') } ${returning('0')}`)).rejects.toThrow(/not so/)
  expect(issueTexts(prepare({}).issues.list)).toEqual([
    'error params.javaScript: either "javaScript" or "module" is required, and not both',
  ])
  expect(issueTexts(prepare({ javaScript: returning('0'), maxBodyKilobytes: '5000' }).issues.list)).toEqual([
    'error params.maxBodyKilobytes.0: "maxBodyKilobytes": must be a whole number from 0 to 4096, not "5000"',
  ])
})
