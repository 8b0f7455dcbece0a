import { generateKeyPairSync } from 'node:crypto'
import { jwtVerify } from 'jose'
import { expect, test } from 'vitest'
import type { HttpAnswer, HttpCall } from '#protocols/http/http-client.ts'
import { type ClientProof, ClientToken, readClientKey } from '#protocols/oauth/client-token.ts'

const tokenUrl = new URL('https://login.test/token')
const bySecret: ClientProof = { kind: 'basic', secret: 'p&s:%' }

/** A token endpoint with a list of responses, and a clock. */
function endpoint(answers: readonly (Partial<HttpAnswer> & { json?: unknown })[], proof = bySecret) {
  const calls: HttpCall[] = []
  const time = { now: Date.parse('2026-01-02T03:04:05Z') }
  const send = async (call: HttpCall): Promise<HttpAnswer> => {
    calls.push(call)
    const { json, ...answer } = answers[Math.min(calls.length, answers.length) - 1] ?? {}
    return { status: 200, headers: {}, body: JSON.stringify(json), ...answer }
  }
  const token = new ClientToken(send, {
    tokenUrl,
    clientId: 'gate:house',
    proof,
    scope: 'scim',
    audience: 'https://scim.test',
    name: 'crm',
    clock: () => new Date(time.now),
  })
  return { token, calls, time, form: (i = 0) => new URLSearchParams(calls[i]?.body) }
}

test('concurrent callers share one request; a token is cached, and renewed shortly before it expires', async () => {
  const { token, calls, time } = endpoint([
    { json: { access_token: 'one', token_type: 'bearer', expires_in: 600 } },
    { json: { access_token: 'two', token_type: 'Bearer', expires_in: '600' } },
  ])
  expect(await Promise.all([token.get(1000), token.get(1000), token.get(1000)])).toEqual(['one', 'one', 'one'])
  time.now += 539_000
  expect(await token.get(1000)).toBe('one')
  expect(calls).toHaveLength(1)
  time.now += 2_000
  expect(await token.get(1000)).toBe('two')
  token.forget()
  await token.get(1000)
  expect(calls).toHaveLength(3)
})

test('the client authenticates by HTTP Basic, form-encoded', async () => {
  const { token, calls, form } = endpoint([{ json: { access_token: 'one', token_type: 'bearer' } }])
  await token.get(1000)
  const basic = Buffer.from(calls[0]?.headers['authorization']?.slice(6) ?? '', 'base64').toString()
  expect(basic).toBe('gate%3Ahouse:p%26s%3A%25')
  expect(Object.fromEntries(form())).toEqual({
    grant_type: 'client_credentials',
    scope: 'scim',
    audience: 'https://scim.test',
  })
})

test('or by its secret in the form', async () => {
  const { token, calls, form } = endpoint([{ json: { access_token: 'one' } }], { kind: 'post', secret: 'p&s' })
  await token.get(1000)
  expect(Object.fromEntries(form())).toMatchObject({ client_id: 'gate:house', client_secret: 'p&s' })
  expect(calls[0]?.headers).not.toHaveProperty('authorization')
})

test.each([
  ['rsa', generateKeyPairSync('rsa', { modulusLength: 2048 }), 'RS256'],
  ['ec', generateKeyPairSync('ec', { namedCurve: 'P-384' }), 'ES384'],
  ['ed25519', generateKeyPairSync('ed25519'), 'EdDSA'],
] as const)('or by a signature with its %s key, another each time', async (_, { privateKey, publicKey }, alg) => {
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const { token, time, form } = endpoint([{ json: { access_token: 'one' } }], {
    kind: 'key',
    key: readClientKey(pem, 'k1'),
  })
  await token.get(1000)
  token.forget()
  await token.get(1000)
  const options = { audience: tokenUrl.href, issuer: 'gate:house', currentDate: new Date(time.now + 59_000) }
  const first = await jwtVerify(form(0).get('client_assertion') ?? '', publicKey, options)
  const second = await jwtVerify(form(1).get('client_assertion') ?? '', publicKey, options)
  expect(first.protectedHeader).toEqual({ alg, typ: 'JWT', kid: 'k1' })
  expect(first.payload.sub).toBe('gate:house')
  expect(first.payload.jti).not.toBe(second.payload.jti)
})

test("keys that can't sign are rejected without quoting them", () => {
  const weak = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey.export({ type: 'pkcs8', format: 'pem' })
  expect(() => readClientKey(weak.toString())).toThrow(/2048/)
  expect(() => readClientKey('-----BEGIN hush-----')).toThrow(/^must be a private key as PEM text$/)
})

test.each([
  [
    { status: 401, json: { error: 'invalid_client', error_description: 'p&s:% is wrong' } },
    'TARGET_FAILED',
    /401 invalid_client$/,
  ],
  [{ status: 400, json: { error: 'a b\nc' } }, 'TARGET_FAILED', /400$/],
  [{ status: 503, body: '<html>' }, 'TARGET_UNREACHABLE', /503$/],
  [{ status: 302, body: '' }, 'TARGET_FAILED', /302$/],
  [{ body: 'nonsense' }, 'TARGET_FAILED', /without a bearer token/],
  [{ json: { access_token: 'a b' } }, 'TARGET_FAILED', /without a bearer token/],
  [{ json: { access_token: 'one', token_type: 'mac' } }, 'TARGET_FAILED', /without a bearer token/],
])('%j is %s, and the next call requests again', async (answer, code, message) => {
  const { token, calls } = endpoint([answer])
  for (const nth of [1, 2]) {
    const error = await token.get(1000).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code, message: expect.stringMatching(message) })
    expect(String(error)).not.toContain('p&s')
    expect(calls).toHaveLength(nth)
  }
})
