import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import developmentIssuer from './development-issuer.ts'

const issuer = 'http://127.0.0.1:8080/dev-issuer'
const signingKey = generateKeyPairSync('rsa', { modulusLength: 2048 })

async function ask(pathInfo: string, method = 'GET') {
  const prepared = developmentIssuer.prepare(fakeParams({ issuer }), noIssues(), fakeParseContext())
  const filter = await prepared.create(fakeModuleHost({ signingKey }))
  const exchange = {
    request: fakeRequest({ method }),
    application: 'a',
    mount: '/dev-issuer',
    pathInfo,
    subject: subject('uid=Anonymous,o=Tremolo'),
  }
  return filter.handle(exchange, async () => {
    throw new Error('there is nothing behind this filter')
  })
}

describe('the documents', () => {
  test('name the issuer and its key, and nothing private', async () => {
    const discovery = await ask('/.well-known/openid-configuration')
    expect(JSON.parse(String(discovery.body))).toMatchObject({ issuer, jwks_uri: `${issuer}/certs` })
    expect(discovery.headers).toMatchObject({
      'content-type': 'application/json',
      'cache-control': 'public, max-age=60',
    })
    const { keys } = JSON.parse(String((await ask('/certs')).body)) as { keys: Record<string, unknown>[] }
    expect(keys.map((key) => Object.keys(key).sort())).toEqual([['alg', 'e', 'kid', 'kty', 'n', 'use']])
  })

  test('HEAD has the headers only', async () => {
    const response = await ask('/certs', 'HEAD')
    expect(response.body).toBeUndefined()
    expect(Number(response.headers['content-length'])).toBeGreaterThan(100)
  })

  test('other paths and methods are rejected', async () => {
    for (const path of ['', '/', '/certs/', '/CERTS', '/.well-known']) {
      await expect(ask(path)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    }
    const error = await ask('/certs', 'POST').catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(GatewayError)
    expect(error).toMatchObject({ code: 'METHOD_NOT_ALLOWED', headers: { allow: 'GET, HEAD' } })
  })
})

test.each([
  'https://issuer.example.com',
  'http://issuer.example.com',
  'http://127.0.0.1:8080/dev-issuer/',
  'dev-issuer',
  '',
])('an issuer such as "%s" is rejected', (text) => {
  const issues = noIssues()
  developmentIssuer.prepare(fakeParams({ issuer: text }), issues, fakeParseContext())
  expect(issueTexts(issues.list)).toEqual([expect.stringMatching(/^error params\.issuer/)])
})
