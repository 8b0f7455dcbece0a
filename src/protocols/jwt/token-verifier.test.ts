import { createHmac, generateKeyPairSync } from 'node:crypto'
import type { JWTPayload } from 'jose'
import { describe, expect, test } from 'vitest'
import { pinnedKeySet } from '#protocols/jwt/keys.ts'
import { createTokenVerifier, TokenRejected, type TokenRules } from '#protocols/jwt/token-verifier.ts'
import { ecKey, rsaKey, signedToken } from '#testing/login/fake-issuer.ts'

const now = 1_800_000_000
const clock = () => new Date(now * 1000)
const key = rsaKey('k1')
const rules: TokenRules = {
  issuer: 'https://issuer.example.com',
  audiences: ['gatehouse', 'other'],
  allowNoIat: false,
  notBeforeMinutes: 5,
}
const good: JWTPayload = { iss: rules.issuer, aud: 'gatehouse', sub: 'alice', iat: now - 10, exp: now + 600 }

const verify = (token: string, changed: Partial<TokenRules> = {}, publicKey = key.publicKey) =>
  createTokenVerifier({ ...rules, ...changed }, pinnedKeySet(publicKey), clock).verify(token)

/** The description that a client sees. */
const refusal = async (token: string, changed: Partial<TokenRules> = {}): Promise<string> => {
  const error = await verify(token, changed).then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (error instanceof TokenRejected) return error.description
  throw new Error('the token was not rejected', { cause: error })
}

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

describe('a token', () => {
  test('that is valid is accepted, with its claims, key and expiry', async () => {
    const verified = await verify(await signedToken(key, good))
    expect(verified.claims.sub).toBe('alice')
    expect(verified.expires.getTime()).toBe((now + 600) * 1000)
    expect(verified.key.current).toBe(true)
  })

  test('with a list of audiences is accepted if one is ours', async () => {
    await expect(verify(await signedToken(key, { ...good, aud: ['x', 'other'] }))).resolves.toBeDefined()
  })

  test('of an elliptic-curve key is accepted', async () => {
    const ec = ecKey('e1')
    await expect(verify(await signedToken(ec, good), {}, ec.publicKey)).resolves.toBeDefined()
  })

  test.each<[string, Record<string, unknown>, string]>([
    ['expired', { ...good, exp: now - 31 }, 'The token is expired'],
    ['expired and for another audience', { ...good, exp: now - 31, aud: 'gatehouse2' }, 'The token is expired'],
    ['without exp', { ...good, exp: undefined }, 'The token is not valid'],
    ['without iat', { ...good, iat: undefined }, 'The token is not valid'],
    ['without audience', { ...good, aud: undefined }, 'The token is for another audience; wanted: gatehouse or other'],
    [
      'for another audience',
      { ...good, aud: 'gatehouse2' },
      'The token is for another audience; wanted: gatehouse or other',
    ],
    ['without issuer', { ...good, iss: undefined }, 'The token is from another issuer'],
    ['from another issuer', { ...good, iss: `${rules.issuer}/` }, 'The token is from another issuer'],
    ['that is not valid yet', { ...good, nbf: now + 31 }, 'The token is not valid yet'],
    ['issued in the future', { ...good, iat: now + 331 }, 'The token is not valid yet'],
    ['that never ends', { ...good, exp: 1e300 }, 'The token is not valid'],
    ['with an exp that is not a number', { ...good, exp: '9999999999' }, 'The token is not valid'],
  ])('%s is rejected', async (_case, claims, description) => {
    const clean = Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== undefined))
    expect(await refusal(await signedToken(key, clean))).toBe(description)
  })

  test('may be used defaultNotBeforeMinutes before its iat, and minutes are minutes', async () => {
    const early = await signedToken(key, { ...good, iat: now + 5 * 60 })
    await expect(verify(early)).resolves.toBeDefined()
    expect(await refusal(early, { notBeforeMinutes: 1 })).toBe('The token is not valid yet')
  })

  test('without iat is accepted only if that is allowed', async () => {
    const { iat: _iat, ...claims } = good
    await expect(verify(await signedToken(key, claims), { allowNoIat: true })).resolves.toBeDefined()
  })

  test('that is unsigned is rejected, in every form', async () => {
    for (const alg of ['none', 'None', 'NONE', '']) {
      expect(await refusal(`${part({ alg })}.${part(good)}.`)).toBe('The token is not valid')
    }
    const [header, payload] = (await signedToken(key, good)).split('.')
    expect(await refusal(`${header}.${payload}.`)).toBe('The token is not valid')
    expect(await refusal(`${header}.${payload}`)).toBe('The token is not valid')
  })

  test('signed with HS256 and the public key as secret is rejected', async () => {
    for (const secret of [
      key.publicKey.export({ type: 'spki', format: 'pem' }),
      key.publicKey.export({ type: 'spki', format: 'der' }),
    ]) {
      const signed = `${part({ alg: 'HS256', kid: 'k1' })}.${part(good)}`
      const mac = createHmac('sha256', secret).update(signed).digest('base64url')
      expect(await refusal(`${signed}.${mac}`)).toBe('The token is not valid')
    }
  })

  test('signed by another key is rejected', async () => {
    expect(await refusal(await signedToken(rsaKey('k1'), good))).toBe('The token is not valid')
    expect(await refusal(await signedToken(ecKey('k1'), good))).toBe('The token is not valid')
  })

  test('with changed claims is rejected', async () => {
    const [header, , signature] = (await signedToken(key, good)).split('.')
    expect(await refusal(`${header}.${part({ ...good, sub: 'admin' })}.${signature}`)).toBe('The token is not valid')
  })

  test('with its own key is rejected', async () => {
    const own = rsaKey('k1')
    const jwk = own.publicKey.export({ format: 'jwk' })
    expect(await refusal(await signedToken(own, good, { jwk } as object))).toBe('The token is not valid')
  })

  test('that is too long or not a token is rejected', async () => {
    expect(await refusal('a'.repeat(20_000))).toBe('The token is not valid')
    for (const text of ['', '.', '..', 'a.b.c', '....', `${part([])}.${part([])}.x`]) {
      expect(await refusal(text)).toBe('The token is not valid')
    }
  })

  test('is not verified with a key that is too short', async () => {
    const short = { ...key, ...generateKeyPairSync('rsa', { modulusLength: 1024 }) }
    await expect(verify(await signedToken(key, good), {}, short.publicKey)).rejects.toThrow(/unknown key/)
  })
})

test("a verifier without audience can't be created", () => {
  expect(() => createTokenVerifier({ ...rules, audiences: [] }, pinnedKeySet(key.publicKey), clock)).toThrow(/audience/)
})
