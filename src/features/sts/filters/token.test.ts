import { decodeJwt } from 'jose'
import { describe, expect, it } from 'vitest'
import { asGatewayError } from '#kernel/errors.ts'
import { jwtTokenType, tokenExchangeGrant } from '#protocols/sts/token-exchange.ts'
import type { LoggedCaller } from '#sdk/filter/exchange.ts'
import type { GatewayRequest, GatewayResponse } from '#sdk/http/http.ts'
import { expectDescribedBy } from '#testing/gateway/api-contract.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, noIssues } from '#testing/modules/fake-parse.ts'
import { type FakeRequest, fakeRequest } from '#testing/modules/fake-request.ts'
import { issuingFixture } from '#testing/sts/token-issuing-fixture.ts'
import stsToken from './token.ts'

async function start() {
  const fixture = await issuingFixture()
  const prepared = stsToken.prepare(fakeParams({ endpoint: 'cloud' }), noIssues(), fakeParseContext())
  const filter = await prepared.create(Object.assign(fakeModuleHost(), { tokens: fixture.issuing }))
  const identified: LoggedCaller[] = []
  /** Like the pipeline: errors become answers in the filter's own format. */
  const send = async (pathInfo: string, request: FakeRequest): Promise<GatewayResponse> => {
    const answer = await received(pathInfo, request)
    // A bare token is not JSON.
    const isBare = answer.headers['content-type'] === 'application/jwt'
    if (!isBare) expectDescribedBy(prepared, request.method ?? 'GET', pathInfo, answer)
    return answer
  }
  const received = async (pathInfo: string, request: FakeRequest): Promise<GatewayResponse> => {
    const exchange = {
      application: 'sts',
      mount: '/sts/cloud/token',
      pathInfo,
      subject: subject('uid=Anonymous,o=Tremolo'),
    }
    try {
      const identify = (caller: LoggedCaller) => void identified.push(caller)
      const all = { ...exchange, request: fakeRequest(request), identify }
      return await filter.handle(all, async () => ({ status: 404, headers: {} }))
    } catch (thrown) {
      const error = asGatewayError(thrown)
      const { headers, body } = prepared.errors(error, 'request-1')
      return {
        status: error.status,
        headers: { ...headers, ...error.headers },
        ...(body === undefined ? {} : { body }),
      }
    }
  }
  const token = await fixture.cluster().token()
  const form = (more: Readonly<Record<string, string>> = {}): FakeRequest => ({
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({
      grant_type: tokenExchangeGrant,
      subject_token: token,
      subject_token_type: jwtTokenType,
      ...more,
    }).toString(),
  })
  return { fixture, send, token, form, identified }
}

const json = ({ body }: GatewayResponse): Record<string, unknown> => JSON.parse(String(body)) as Record<string, unknown>

describe('filters.StsToken', () => {
  it('says whether a key was revoked, to anyone and never from a cache', async () => {
    const { send } = await start()
    const states = await Promise.all(['revoked', 'another'].map((kid) => send(`/key/${kid}`, {})))
    expect(states.map(({ status, headers, body }) => [status, headers['cache-control'], body])).toEqual([
      [410, 'no-store', undefined],
      [204, 'no-store', undefined],
    ])
    expect((await send('/key/revoked', { method: 'POST' })).status).toBe(405)
    for (const path of ['/key/', '/key/a.b', '/key/a/b', `/key/${'k'.repeat(129)}`]) {
      expect((await send(path, {})).status).toBe(404)
    }
  })

  it('answers a token exchange with JSON that is not cached', async () => {
    const { send, form } = await start()
    const answer = await send('', form())
    expect(answer.status).toBe(200)
    expect(answer.headers).toMatchObject({
      'content-type': 'application/json',
      'cache-control': 'no-store',
      'refresh-after': '600',
    })
    expect(json(answer)).toMatchObject({ issued_token_type: jwtTokenType, token_type: 'N_A', expires_in: 900 })
  })

  it('returns the bare token, without a line end, for application/jwt', async () => {
    const { send, form } = await start()
    const request = form()
    const answer = await send('', { ...request, headers: { ...request.headers, accept: 'application/jwt' } })
    expect(answer.headers).toMatchObject({ 'content-type': 'application/jwt', 'refresh-after': '600' })
    expect(String(answer.body)).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+$/)
    for (const accept of ['*/*', 'application/jwt;q=0, application/json', 'application/json']) {
      const other = await send('', { ...request, headers: { ...request.headers, accept } })
      expect(other.headers['content-type']).toBe('application/json')
    }
  })

  it('answers old sidecars in their format, without certificate and thumbprint (C19)', async () => {
    const { send, token, fixture } = await start()
    const answer = await send('/user', { method: 'GET', headers: { authorization: `Bearer ${token}` } })
    const { displayName, token: given } = json(answer) as {
      displayName: string
      token: { jwt: string; expires: string }
    }
    expect(displayName).toBe('system:serviceaccount:shop:cart')
    expect(Object.keys(given)).toEqual(['jwt', 'expires'])
    expect(decodeJwt(given.jwt).aud).toBe('https://cloud.example.com')
    expect(given.expires).toBe(new Date(fixture.clock.millis + 900_000).toISOString())
    expect(answer.headers).toMatchObject({ 'cache-control': 'no-store' })
  })

  it('C13: accepts a token from the header or the form only', async () => {
    const { send, token, fixture } = await start()
    const inQuery = await send('/user', { url: `http://localhost/?access_token=${token}` })
    expect([inQuery.status, inQuery.headers['www-authenticate']]).toEqual([401, 'Bearer realm="sts"'])
    const otherScheme = await send('/user', { headers: { authorization: `Token ${token}` } })
    expect(otherScheme.status).toBe(401)
    const byGet = await send('', { method: 'GET', headers: { authorization: `Bearer ${token}` } })
    expect([byGet.status, byGet.headers['allow']]).toEqual([405, 'POST'])
    const byPost = await send('/user', { method: 'POST', headers: { authorization: `Bearer ${token}` } })
    expect([byPost.status, byPost.headers['allow']]).toEqual([405, 'GET'])
    expect(fixture.audit.map(({ action }) => action)).toEqual(['refuse', 'refuse', 'refuse', 'refuse'])
  })

  it.each([
    ['another audience', { audience: 'https://other.example.com' }, 400, 'invalid_target'],
    ['another grant', { grant_type: 'client_credentials' }, 400, 'unsupported_grant_type'],
    ['an invalid token', { subject_token: 'x' }, 400, 'invalid_request'],
  ])('rejects %s with an OAuth error, and audits it', async (_, more, status, code) => {
    const { send, form, fixture, token } = await start()
    const answer = await send('', form(more))
    expect([answer.status, json(answer)['error'], answer.headers['cache-control']]).toEqual([status, code, 'no-store'])
    expect(String(answer.body)).not.toContain(token)
    expect(fixture.audit.map(({ action }) => action)).toEqual(['refuse'])
  })

  it('ignores client credentials and unknown parameters', async () => {
    const { send, form } = await start()
    const answer = await send('', form({ client_id: 'x', client_secret: 'y', nonce: 'z' }))
    expect([answer.status, json(answer)['issued_token_type']]).toEqual([200, jwtTokenType])
  })

  it('logs the workload in the access log, also if it gets nothing, and none if the signature is not verified', async () => {
    const { send, form, fixture, identified } = await start()
    const pod = { name: 'cart-7', uid: 'pod-7' }
    await send('', form({ subject_token: await fixture.cluster().token({ pod }) }))
    await send('', form({ subject_token: await fixture.cluster().token({ pod, account: 'other' }) }))
    await send('', form({ subject_token: 'abc.def.ghi' }))
    const workload = { cluster: 'k8s', namespace: 'shop', serviceAccount: 'cart', pod: 'cart-7', podUid: 'pod-7' }
    expect(identified).toEqual([
      { subject: 'system:serviceaccount:shop:cart', endpoint: 'cloud', workload },
      {
        subject: 'system:serviceaccount:shop:other',
        endpoint: 'cloud',
        workload: { ...workload, serviceAccount: 'other' },
      },
    ])
  })

  it('returns 403 if a retry by the sidecar cannot help', async () => {
    const { send, form, fixture } = await start()
    const answer = await send('', form({ subject_token: await fixture.cluster().token({ account: 'other' }) }))
    expect([answer.status, json(answer)['error']]).toEqual([403, 'access_denied'])
  })

  it('clients whose forms do not arrive keep no other client from a token', async () => {
    const { fixture, form } = await start()
    const prepared = stsToken.prepare(fakeParams({ endpoint: 'cloud' }), noIssues(), fakeParseContext())
    const filter = await prepared.create(Object.assign(fakeModuleHost(), { tokens: fixture.issuing }))
    const handle = (request: GatewayRequest) =>
      filter.handle(
        { application: 'sts', mount: '/', pathInfo: '', subject: subject('uid=Anonymous,o=Tremolo'), request },
        async () => ({ status: 404, headers: {} }),
      )
    const never = { ...fakeRequest(form()), body: () => new Promise<Buffer>(() => {}) }
    for (let i = 0; i < 200; i++) void handle(never)
    expect((await handle(fakeRequest(form()))).status).toBe(200)
  }, 20_000)

  it('C10: has nothing at other paths', async () => {
    const { send, form } = await start()
    for (const path of ['/', '/users', '/user/x']) expect((await send(path, form())).status).toBe(404)
  })

  it('is not created if no endpoint is configured', async () => {
    const prepared = stsToken.prepare(fakeParams({ endpoint: 'cloud' }), noIssues(), fakeParseContext())
    await expect(prepared.create(fakeModuleHost())).rejects.toThrow(/no sts.endpoints/)
  })
})
