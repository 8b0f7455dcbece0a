import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import { calculateJwkThumbprint } from 'jose'
import { describe, expect, test } from 'vitest'
import { discoveryDocument } from '#protocols/sts/discovery-document.ts'
import { publicTokenKey } from '#protocols/sts/signed-token.ts'

describe('a published key', () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' })
  const edwards = generateKeyPairSync('ed25519')

  test.each([
    ['RSA', rsa, ['alg', 'e', 'kid', 'kty', 'n', 'use'], 'RS256'],
    ['EC', ec, ['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y'], 'ES256'],
    ['EC', p384, ['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y'], 'ES384'],
    ['OKP', edwards, ['alg', 'crv', 'kid', 'kty', 'use', 'x'], 'EdDSA'],
  ] as const)('C8: %s has exactly its members, and its thumbprint as kid', async (_kty, pair, members, alg) => {
    const key = publicTokenKey(pair.privateKey)
    expect(Object.keys(key).sort()).toEqual(members)
    expect(key).toMatchObject({ alg, use: 'sig', kid: await calculateJwkThumbprint(key) })
    expect(key.kid).toMatch(/^[A-Za-z0-9_-]{43}$/)
    expect(publicTokenKey(pair.publicKey)).toEqual(key)
  })

  test('has the thumbprint of the example of RFC 7638', () => {
    const n =
      '0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw'
    const jwk = { kty: 'RSA', n, e: 'AQAB' }
    const { kid } = publicTokenKey(createPublicKey({ key: jwk, format: 'jwk' }))
    expect(kid).toBe('NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs')
  })

  test('has a type that signs', () => {
    const short = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey
    const other = generateKeyPairSync('ec', { namedCurve: 'P-521' }).publicKey
    const edwards = generateKeyPairSync('ed448').publicKey
    for (const key of [short, other, edwards]) expect(() => publicTokenKey(key)).toThrow()
  })
})

describe('a discovery document', () => {
  const document = discoveryDocument({
    issuer: 'https://issuer.example.com/aws',
    algorithms: ['RS256', 'RS256'],
    claims: ['team', 'sub'],
  })

  test('has the fields that consumers were set up with', () => {
    expect(Object.keys(document)).toEqual([
      'issuer',
      'authorization_endpoint',
      'token_endpoint',
      'userinfo_endpoint',
      'revocation_endpoint',
      'jwks_uri',
      'response_types_supported',
      'subject_types_supported',
      'id_token_signing_alg_values_supported',
      'grant_types_supported',
      'scopes_supported',
      'token_endpoint_auth_methods_supported',
      'claims_supported',
      'code_challenge_methods_supported',
    ])
    expect(document).toMatchObject({
      issuer: 'https://issuer.example.com/aws',
      response_types_supported: ['id_token'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['RS256'],
      token_endpoint: 'https://issuer.example.com/aws/token',
      grant_types_supported: ['urn:ietf:params:oauth:grant-type:token-exchange'],
      scopes_supported: ['openid', 'email', 'profile'],
      token_endpoint_auth_methods_supported: ['client_secret_post'],
      code_challenge_methods_supported: ['plain', 'S256'],
    })
  })

  test('C10, C12: its URLs are below the issuer, and no claim is listed twice', () => {
    expect(document['jwks_uri']).toBe('https://issuer.example.com/aws/certs')
    expect(document['claims_supported']).toEqual(['sub', 'aud', 'iss', 'exp', 'cluster', 'namespace', 'saname', 'team'])
  })
})
