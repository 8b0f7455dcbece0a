import { createHmac, createPublicKey, generateKeyPairSync, sign } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { rawRequest } from '#testing/gateway/raw-request.ts'

let gateway: GatewayProcess
let token: string
const scimError = 'urn:ietf:params:scim:api:messages:2.0:Error'
const patchOp = 'urn:ietf:params:scim:api:messages:2.0:PatchOp'

beforeAll(async () => {
  gateway = await startGatewayProcess({ config: 'examples/quickstart' })
  token = await gateway.token('--subject', 'idp', '--claim', 'role=crm')
})
afterAll(async () => {
  // It still serves, nothing failed inside, and it ends in order.
  expect((await call('GET', '/scim/people/Users/nobody')).status).toBe(404)
  expect(await gateway.stop()).toBe(0)
  expect(gateway.output()).not.toMatch(/"status":500|Unhandled/)
})

interface Sent {
  readonly body?: unknown
  readonly text?: string | Uint8Array<ArrayBuffer>
  readonly headers?: Readonly<Record<string, string>>
}

async function call(method: string, path: string, { body, text, headers }: Sent = {}) {
  const sent = text ?? (body === undefined ? undefined : JSON.stringify(body))
  const response = await fetch(gateway.url + path, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/scim+json', ...headers },
    ...(sent === undefined ? {} : { body: sent }),
  })
  const answer = await response.text()
  return { status: response.status, headers: response.headers, body: answer === '' ? undefined : JSON.parse(answer) }
}

const raw = (text: string): Promise<string> => rawRequest(Number(new URL(gateway.url).port), text)

describe('HTTP', () => {
  const host = 'Host: 127.0.0.1'
  const get = (path: string, head = host) => `GET ${path} HTTP/1.1\r\n${head}\r\nConnection: close\r\n\r\n`
  const post = (head: string, body: string) =>
    `POST /scim/people/Users HTTP/1.1\r\n${host}\r\nAuthorization: Bearer TOKEN\r\nContent-Type: application/json\r\nConnection: close\r\n${head}\r\n\r\n${body}`

  test.each<[string, string, number]>([
    [
      'length and chunks',
      post('Content-Length: 4\r\nTransfer-Encoding: chunked', '0\r\n\r\nGET / HTTP/1.1\r\n\r\n'),
      400,
    ],
    ['a list of lengths', post('Content-Length: 2, 2', '{}'), 400],
    ['a signed length', post('Content-Length: +2', '{}'), 400],
    ['a length of 10 GB', post('Content-Length: 10000000000', '{}'), 413],
    ['an unknown coding', post('Transfer-Encoding: xchunked', '{}'), 400],
    ['a blank before the colon', post('Transfer-Encoding : chunked', '0\r\n\r\n'), 400],
    ['an invalid chunk size', post('Transfer-Encoding: chunked', 'zz\r\n{}\r\n0\r\n\r\n'), 400],
    ['a folded header', get('/scim/people/Users', `${host}\r\nX-A: a\r\n b`), 400],
    ['lines without CR', get('/scim/people/Users').replaceAll('\r', ''), 400],
    ['a NUL in a header', get('/scim/people/Users', `${host}\r\nX-A: a\0b`), 400],
    ['no host', get('/scim/people/Users', 'X-A: b'), 400],
    ['a list of hosts', get('/scim/people/Users', 'Host: 127.0.0.1, evil'), 400],
    ['another host', get('/scim/people/Users', 'Host: evil'), 404],
    ['a host with a user', get('/scim/people/Users', 'Host: evil@127.0.0.1'), 400],
    ['an absolute address', get('http://127.0.0.1/scim/people/Users'), 400],
    ['a star', get('*'), 400],
    ['a doubled slash', get('//scim/people/Users'), 404],
    ['an escaped slash', get('/scim/people%2FUsers'), 404],
    ['another gateway by dots', get('/scim/people/%2e%2e/crm/Users'), 400],
    ['a path parameter', get('/scim/people;x=1/Users'), 404],
    ['8,000 slashes', get(`/${'/'.repeat(8000)}`), 404],
    ['an unknown method', get('/scim/people/Users').replace('GET', 'BREW'), 400],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
    ['a TLS greeting', '\x16\x03\x01\x00\x51\x01\x00\x00\x4d\x03\x03', 400],
  ])('%s', async (_what, text, status) => {
    const answer = await raw(text.replace('TOKEN', token))
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} [\\s\\S]*\\r\\n\\r\\n{"`))
    expect(answer).not.toMatch(/node_modules|at .*\.ts/)
  })

  test.each<[string, string, Sent, number]>([
    ['TRACE', '/Users', {}, 405],
    ['PUT', '/Users', { body: {} }, 405],
    ['PROPFIND', '/Users', {}, 405],
    ['POST', '/Users', { body: {}, headers: { 'content-type': 'text/plain' } }, 415],
    ['POST', '/Users', { body: {}, headers: { 'content-type': 'application/json; charset=utf-16' } }, 415],
    ['POST', '/Users', { body: {}, headers: { 'content-encoding': 'gzip' } }, 415],
    ['GET', '/Users', { headers: { accept: 'text/html' } }, 406],
    ['GET', '/Users/%zz', {}, 400],
    ['GET', '/Users/a/b', {}, 404],
    ['GET', '/constructor', {}, 404],
    ['GET', '/Schemas/__proto__', {}, 404],
    ['GET', `/Users/${'a'.repeat(9000)}`, {}, 414],
    ['POST', '/Users', { body: { userName: 'x', displayName: 'x'.repeat(1_100_000) } }, 413],
  ])('%s %s', async (method, path, sent, status) => {
    if (method === 'TRACE') {
      // Clients do not send it.
      const text = `TRACE /scim/people/Users HTTP/1.1\r\n${host}\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`
      expect(await raw(text)).toMatch(/^HTTP\/1.1 405 [\s\S]*api:messages:2.0:Error/)
      return
    }
    const { body, ...answer } = await call(method, `/scim/people${path}`, sent)
    expect([answer.status, body.schemas, body.status]).toEqual([status, [scimError], String(status)])
  })
})

describe('tokens', () => {
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const signed = (header: object, payload: string): string => {
    const text = `${part({ alg: 'RS256', ...header })}.${payload}`
    return `${text}.${sign('sha256', Buffer.from(text), privateKey).toString('base64url')}`
  }
  const pieces = () => {
    const [header = '', payload = '', signature = ''] = token.split('.')
    return { header, payload, signature, kid: JSON.parse(Buffer.from(header, 'base64url').toString()).kid as string }
  }

  async function publishedKey(): Promise<string> {
    const read = async (url: string) => JSON.parse(await (await fetch(url)).text())
    const { jwks_uri } = await read(`${gateway.url}/dev-issuer/.well-known/openid-configuration`)
    const { keys } = await read(jwks_uri)
    return createPublicKey({ key: keys[0], format: 'jwk' }).export({ type: 'spki', format: 'pem' }).toString()
  }

  const forged: Record<string, () => string | Promise<string>> = {
    'alg none': () => `${part({ alg: 'none' })}.${pieces().payload}.`,
    'alg None with a signature': () => `${part({ alg: 'None' })}.${pieces().payload}.${pieces().signature}`,
    'the public key as a secret': async () => {
      const text = `${part({ alg: 'HS256', kid: pieces().kid })}.${pieces().payload}`
      return `${text}.${createHmac('sha256', await publishedKey())
        .update(text)
        .digest('base64url')}`
    },
    'a key of its own under the right name': () => signed({ kid: pieces().kid }, pieces().payload),
    'a key of its own brought along': () => signed({ jwk: publicKey.export({ format: 'jwk' }) }, pieces().payload),
    'an address for keys': () => signed({ jku: `${gateway.url}/x`, x5u: `${gateway.url}/x` }, pieces().payload),
    'a path as key name': () => signed({ kid: '../../../../dev/null' }, pieces().payload),
    'an object as key name': () => signed({ kid: { __proto__: null } }, pieces().payload),
    'another payload': () => `${pieces().header}.${part({ sub: 'idp' })}.${pieces().signature}`,
    'no signature': () => `${pieces().header}.${pieces().payload}.`,
    'too many parts': () => `${token}.a.b`,
    'nothing but dots': () => '..',
    'a list of two': () => `${token}, ${token}`,
    '12,000 characters': () => 'a'.repeat(12_000),
    'another audience': () => gateway.token('--subject', 'idp', '--audience', 'other'),
  }

  test.each(Object.keys(forged))('%s', async (name) => {
    const authorization = `Bearer ${await forged[name]?.()}`
    const { status, headers, body } = await call('GET', '/scim/people/Users', { headers: { authorization } })
    expect([status, body.schemas, body.status]).toEqual([401, [scimError], '401'])
    expect(headers.get('www-authenticate')).toMatch(/^Bearer realm="gatehouse"/)
  })

  test('only in its header', async () => {
    const headers = { authorization: '', cookie: `access_token=${token}` }
    expect((await call('GET', `/scim/people/Users?access_token=${token}`, { headers })).status).toBe(401)
  })

  test('no token is ever logged', () => {
    expect(gateway.output()).not.toContain(pieces().signature)
  })
})

describe('SCIM', () => {
  const bytes = (...parts: (string | number[])[]) =>
    new Uint8Array(Buffer.concat(parts.map((piece) => Buffer.from(piece as string))))

  test.each<[string, string | Uint8Array<ArrayBuffer>]>([
    ['bytes that are not UTF-8', bytes('{"userName":"', [0xff, 0xfe], '"}')],
    ['UTF-16', new Uint8Array(Buffer.from('{"userName":"x"}', 'utf16le'))],
    ['100,000 brackets', '['.repeat(100_000)],
    ['100,000 brackets in a value', `{"userName":"x","emails":${'['.repeat(100_000)}${']'.repeat(100_000)}}`],
    ['a number as name', '{"userName":1e999}'],
    ['a lone surrogate', '{"userName":"a\\ud800"}'],
    ['a NUL', '{"userName":"a\\u0000"}'],
    ['a name of 1 MB', JSON.stringify({ userName: 'x'.repeat(1_000_000) })],
    ['a name of dots', '{"userName":".."}'],
    ['5,000 addresses', JSON.stringify({ userName: 'x', emails: Array(5000).fill({ value: 'a@x.org' }) })],
    ['two primaries', '{"userName":"x","emails":[{"value":"a","primary":true},{"value":"b","primary":true}]}'],
    ['a list', '[]'],
    ['nothing', ''],
  ])('a user: %s', async (_what, text) => {
    const { status, body } = await call('POST', '/scim/people/Users', { text })
    expect([status, body.schemas]).toEqual([400, [scimError]])
  })

  test.each([
    'userName eq "',
    'userName eq a b',
    '('.repeat(2000),
    `${'not ('.repeat(500)}userName pr${')'.repeat(500)}`,
    Array(200).fill('userName pr').join(' or '),
    'userName eq "\\u0000"',
    '__proto__ pr',
    'emails[constructor eq "a"]',
    'password sw "a"',
    'meta.created gt "junk"',
    `userName eq "${'a'.repeat(5000)}"`,
  ])('a filter, %#: %j', async (filter) => {
    const { status, body } = await call('GET', `/scim/people/Users?filter=${encodeURIComponent(filter)}`)
    expect([status, body.scimType]).toEqual([400, 'invalidFilter'])
  })

  test.each(["a' or 1=1 --", '*)(uid=*', '%', '_', '\\'])('a filter finds nothing by %s', async (value) => {
    for (const operator of ['eq', 'co']) {
      const filter = encodeURIComponent(`userName ${operator} ${JSON.stringify(value)}`)
      expect((await call('GET', `/scim/people/Users?filter=${filter}`)).body.totalResults).toBe(0)
    }
  })

  test.each<[unknown, string]>([
    [{ op: 'add', path: '__proto__.x', value: 1 }, 'invalidPath'],
    [{ op: 'add', path: 'name.constructor', value: {} }, 'invalidPath'],
    [{ op: 'constructor', path: 'title', value: 1 }, 'invalidSyntax'],
    [{ op: 'remove' }, 'noTarget'],
    [{ op: 'remove', path: 'userName' }, 'mutability'],
    [{ op: 'replace', path: 'id', value: 'x' }, 'mutability'],
    [{ op: 'remove', path: 'emails[' }, 'invalidPath'],
    [{ op: 'remove', path: `emails[${'('.repeat(5000)}` }, 'invalidPath'],
    [{ op: 'replace', path: 'active', value: 'perhaps' }, 'invalidValue'],
    [{ op: 'replace', path: 'displayName', value: { a: 1 } }, 'invalidValue'],
    [{ op: 'replace', path: 'displayName', value: '\0' }, 'invalidValue'],
  ])('a change: %j', async (operation, scimType) => {
    const find = `/scim/people/Users?filter=${encodeURIComponent('userName eq "grace"')}`
    const [before] = (await call('GET', find)).body.Resources
    const Operations = [{ op: 'replace', path: 'displayName', value: 'half done' }, operation]
    const answer = await call('PATCH', `/scim/people/Users/${before.id}`, { body: { schemas: [patchOp], Operations } })
    expect([answer.status, answer.body.scimType]).toEqual([400, scimType])
    expect((await call('GET', find)).body.Resources).toEqual([before])
  })

  const names = ['a b', 'a/b', 'a%2fb', 'a?b#c;d', '"q"', "o'brien", 'a\\b', '日本😀', '%', '__proto__', '*', '...']
  test.each(names)('a user named %j can be read, changed and deleted by meta.location', async (userName) => {
    for (const base of ['/scim/people', '/scim/crm']) {
      const { body } = await call('POST', `${base}/Users`, { body: { userName } })
      const path = body.meta.location.slice(gateway.url.length)
      expect((await call('GET', path)).body).toMatchObject({ userName, id: body.id })
      const Operations = [{ op: 'replace', path: 'displayName', value: 'D' }]
      const changed = await call('PATCH', path, { body: { schemas: [patchOp], Operations } })
      expect(changed.body).toMatchObject({ userName, displayName: 'D' })
      expect([(await call('DELETE', path)).status, (await call('GET', path)).status]).toEqual([204, 404])
    }
  })
})
