import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ErrorCode, errorCodes, GatewayError } from '#kernel/errors.ts'
import {
  jwtTokenType,
  oauthErrors,
  oauthRefusal,
  readTokenExchange,
  tokenExchangeAnswer,
  tokenExchangeGrant,
} from '#protocols/sts/token-exchange.ts'

const form = 'application/x-www-form-urlencoded'
const accessTokenType = 'urn:ietf:params:oauth:token-type:access_token'
const audience = 'https://cloud.example.com'
const valid: readonly [string, string][] = [
  ['grant_type', tokenExchangeGrant],
  ['subject_token', 'a.b.c'],
  ['subject_token_type', jwtTokenType],
]

const bodyOf = (pairs: readonly (readonly [string, string])[]): Buffer =>
  Buffer.from(pairs.map((pair) => pair.map(encodeURIComponent).join('=')).join('&'))

function codeOf(contentType: string | undefined, body: Buffer): string {
  try {
    return `token ${readTokenExchange(contentType, body, audience).subjectToken}`
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    expect(error.status).toBe(400)
    const reported = JSON.parse(oauthErrors(error).body) as { error: string; error_description: string }
    expect(reported.error_description).toMatch(/^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/)
    return reported.error
  }
}

const changed = (name: string, value: string | undefined): (readonly [string, string])[] => [
  ...valid.filter(([known]) => known !== name),
  ...(value === undefined ? [] : [[name, value] as const]),
]

describe('a token-exchange request', () => {
  it.each([
    ['the required parameters', valid, 'token a.b.c'],
    ['the endpoint’s audience', changed('audience', audience), 'token a.b.c'],
    [
      'audience and resource, repeated',
      [...valid, ['audience', audience], ['audience', audience], ['resource', audience]],
      'token a.b.c',
    ],
    ['a requested type', changed('requested_token_type', jwtTokenType), 'token a.b.c'],
    ['a requested access token', changed('requested_token_type', accessTokenType), 'token a.b.c'],
    ['an empty scope', changed('scope', ''), 'token a.b.c'],
    ['another audience', changed('audience', 'https://other.example.com'), 'invalid_target'],
    ['one right and one wrong audience', [...valid, ['audience', audience], ['audience', 'x']], 'invalid_target'],
    ['another resource', changed('resource', 'https://other.example.com'), 'invalid_target'],
    ['a scope', changed('scope', 'openid'), 'invalid_scope'],
    ['another grant', changed('grant_type', 'client_credentials'), 'unsupported_grant_type'],
    ['no grant', changed('grant_type', undefined), 'invalid_request'],
    ['no token', changed('subject_token', undefined), 'invalid_request'],
    ['an empty token', changed('subject_token', ''), 'invalid_request'],
    ['no token type', changed('subject_token_type', undefined), 'invalid_request'],
    ['a SAML assertion', changed('subject_token_type', 'urn:ietf:params:oauth:token-type:saml2'), 'invalid_request'],
    ['a SAML request', changed('requested_token_type', 'urn:ietf:params:oauth:token-type:saml2'), 'invalid_request'],
    ['a repeated token', [...valid, ['subject_token', 'd.e.f']], 'invalid_request'],
    ['a repeated grant', [...valid, ['grant_type', tokenExchangeGrant]], 'invalid_request'],
    ['an actor', [...valid, ['actor_token', 'x']], 'invalid_request'],
    ['client credentials', [...valid, ['client_id', 'x'], ['client_secret', 'y']], 'token a.b.c'],
    ['unknown parameters, repeated', [...valid, ['x', 'y'], ['x', 'z'], ['__proto__', 'x']], 'token a.b.c'],
    [
      'parameters without a value',
      [...valid, ...['audience', 'resource', 'actor_token', 'requested_token_type'].map((name) => [name, ''] as const)],
      'token a.b.c',
    ],
    ['a value and none of the same parameter', [['subject_token', ''], ...valid], 'token a.b.c'],
    ['too many', [...valid, ...Array.from({ length: 40 }, () => ['audience', audience] as const)], 'invalid_request'],
  ] as [string, [string, string][], string][])('with %s', (_, pairs, expected) => {
    expect(codeOf(form, bodyOf(pairs))).toBe(expected)
  })

  it('must be a form in UTF-8', () => {
    for (const type of [undefined, 'application/json', 'multipart/form-data', `${form}; charset=latin1`]) {
      expect(codeOf(type, bodyOf(valid))).toBe('invalid_request')
    }
    expect(codeOf(`${form}; charset=UTF-8`, bodyOf(valid))).toBe('token a.b.c')
    expect(codeOf(form, Buffer.from([0xff, 0xfe, 0x3d]))).toBe('invalid_request')
  })

  it('any request is answered with a token or a typed error', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => void codeOf(form, Buffer.from(bytes))))
    const names = fc.constantFrom('grant_type', 'subject_token', 'audience', 'scope', 'resource', 'x')
    fc.assert(fc.property(fc.array(fc.tuple(names, fc.string())), (pairs) => void codeOf(form, bodyOf(pairs))))
  })
})

describe('a token-exchange response', () => {
  it('has the form of RFC 8693 2.2.1', () => {
    expect(JSON.parse(tokenExchangeAnswer({ token: 'a.b.c', expiresInSeconds: 900 }, jwtTokenType))).toEqual({
      access_token: 'a.b.c',
      issued_token_type: jwtTokenType,
      token_type: 'N_A',
      expires_in: 900,
    })
  })

  it('is a bearer token if the client requests an access token', () => {
    const answer = tokenExchangeAnswer({ token: 'a.b.c', expiresInSeconds: 900 }, accessTokenType)
    expect(JSON.parse(answer)).toMatchObject({ issued_token_type: accessTokenType, token_type: 'Bearer' })
  })
})

describe('an error of the token endpoint', () => {
  const bodyOf = (error: GatewayError): Record<string, string> => JSON.parse(oauthErrors(error).body)

  it('has invalid_request for a subject token that is not accepted, and keeps the text that sidecars look for', () => {
    expect(bodyOf(oauthRefusal('invalid_grant', 'The subject token is expired.'))).toEqual({
      error: 'invalid_request',
      error_description: 'The subject token is expired.',
      subject_token_error: 'invalid_grant',
    })
  })

  it('has a code that is registered for token endpoints; a failing server has those of RFC 6749', () => {
    const registered = new Set([
      ...['invalid_request', 'invalid_client', 'invalid_scope', 'unsupported_grant_type'],
      ...['invalid_target', 'access_denied', 'slow_down'],
    ])
    const serverCodes = new Set(['server_error', 'temporarily_unavailable'])
    for (const code of Object.keys(errorCodes) as ErrorCode[]) {
      const error = new GatewayError(code, 'x')
      const known = error.status < 500 ? registered : serverCodes
      expect([code, known.has(bodyOf(error)['error'] ?? '')]).toEqual([code, true])
    }
    expect(bodyOf(new GatewayError('TOO_MANY_REQUESTS', 'x'))['error']).toBe('slow_down')
    expect(bodyOf(new GatewayError('TARGET_UNREACHABLE', 'x'))['error']).toBe('temporarily_unavailable')
  })
})
