import type { DescribedRequest } from '#testing/hostile/described-requests.ts'
import { hostileValues } from '#testing/hostile/hostile-values.ts'

export type Actor = 'anonymous' | 'user' | 'approver' | 'administrator' | 'SCIM client'
export const actors: readonly Actor[] = ['anonymous', 'user', 'approver', 'administrator', 'SCIM client']

export type Sample = DescribedRequest

export interface FuzzedRequest {
  readonly number: number
  readonly as: Actor
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Buffer
}

const json = 'application/json'
const scim = 'application/scim+json'
const form = 'application/x-www-form-urlencoded'
const messages = 'urn:ietf:params:scim:api:messages:2.0'
const core = 'urn:ietf:params:scim:schemas:core:2.0'

const scimSamples = (base: string): Sample[] => [
  { method: 'GET', path: `${base}/Users?filter=userName eq "ada"&count=10` },
  { method: 'GET', path: `${base}/Users?sortBy=userName&startIndex=1&attributes=userName,emails` },
  { method: 'GET', path: `${base}/Users/ada` },
  { method: 'GET', path: `${base}/Groups?filter=displayName co "e" and members eq "ada"` },
  { method: 'GET', path: `${base}/Groups/everyone?excludedAttributes=members` },
  { method: 'GET', path: `${base}/Schemas/${core}:User` },
  { method: 'GET', path: `${base}/ResourceTypes` },
  { method: 'GET', path: `${base}/ServiceProviderConfig` },
  {
    method: 'POST',
    path: `${base}/Users`,
    type: scim,
    body: {
      schemas: [`${core}:User`],
      userName: 'joan',
      displayName: 'Joan Clarke',
      name: { givenName: 'Joan', familyName: 'Clarke' },
      emails: [{ value: 'joan@example.com', type: 'work', primary: true }],
      active: true,
    },
  },
  { method: 'PUT', path: `${base}/Users/grace`, type: scim, body: { userName: 'grace', displayName: 'Grace' } },
  {
    method: 'PATCH',
    path: `${base}/Users/grace`,
    type: scim,
    body: {
      schemas: [`${messages}:PatchOp`],
      Operations: [
        { op: 'replace', path: 'displayName', value: 'Grace' },
        { op: 'add', path: 'emails[type eq "work"].value', value: 'g@example.com' },
      ],
    },
  },
  {
    method: 'PATCH',
    path: `${base}/Groups/engineering`,
    type: scim,
    body: { schemas: [`${messages}:PatchOp`], Operations: [{ op: 'add', path: 'members', value: [{ value: 'ada' }] }] },
  },
  { method: 'POST', path: `${base}/Groups`, type: scim, body: { displayName: 'fuzzed', members: [{ value: 'ada' }] } },
  { method: 'DELETE', path: `${base}/Users/joan` },
  {
    method: 'POST',
    path: `${base}/Bulk`,
    type: scim,
    body: {
      schemas: [`${messages}:BulkRequest`],
      failOnErrors: 1,
      Operations: [
        { method: 'POST', path: '/Users', bulkId: 'one', data: { userName: 'bulky' } },
        { method: 'PATCH', path: '/Groups/everyone', data: { Operations: [{ op: 'remove', path: 'members' }] } },
      ],
    },
  },
  {
    method: 'POST',
    path: `${base}/Users/.search`,
    type: scim,
    body: { schemas: [`${messages}:SearchRequest`], filter: 'userName sw "a"', startIndex: 1, count: 5 },
  },
]

const soon = new Date(Date.now() + 86_400_000).toISOString()
/** The id of nothing. */
export const unknownId = '0199a0c1-6d5e-7c33-8e6c-2f3d4b5a6978'
export const portalSamples: readonly Sample[] = [
  ...scimSamples('/scim/people'),
  ...scimSamples('/scim/crm'),
  ...['config', 'user', 'orgs', 'urls', 'urls/org/example', 'workflows/org/example', 'favorites', 'access'].map(
    (path) => ({ method: 'GET', path: `/main/${path}` }),
  ),
  { method: 'GET', path: '/main/workflows/candelegate?workflowName=vault-access' },
  { method: 'GET', path: '/main/approvals?limit=10' },
  { method: 'GET', path: `/main/approvals/${unknownId}?changes=true` },
  { method: 'GET', path: '/main/requests?state=open&about=me&limit=5' },
  { method: 'GET', path: `/main/requests/${unknownId}` },
  { method: 'GET', path: '/main/search?q=ada&kind=person' },
  { method: 'GET', path: `/main/admin/statistics?from=2026-01-01T00:00:00Z&to=${soon}&by=day` },
  { method: 'GET', path: '/main/admin/runs?state=waiting&limit=10' },
  { method: 'GET', path: '/main/admin/scim-journal?limit=10' },
  { method: 'PUT', path: '/main/user', type: json, body: { displayName: { name: 'displayName', value: 'Ada' } } },
  {
    method: 'PUT',
    path: '/main/workflows?outcomes=true',
    type: json,
    body: [{ uuid: 'u-1', name: 'vault-access', reason: 'on call', subjects: ['ada'], doPreApproval: false }],
  },
  { method: 'PUT', path: `/main/approvals/${unknownId}`, type: json, body: { approved: true, reason: 'fine' } },
  {
    method: 'PUT',
    path: '/main/approvals',
    type: json,
    body: { approvals: [unknownId], approved: false, reason: 'no' },
  },
  { method: 'POST', path: `/main/requests/${unknownId}/cancel`, type: json, body: { reason: 'changed my mind' } },
  { method: 'POST', path: '/main/delegations', type: json, body: { deputy: 'alan', starts: soon, ends: soon } },
  { method: 'PUT', path: '/main/favorites/url/wiki' },
  { method: 'POST', path: '/main/recent', type: json, body: { kind: 'url', name: 'wiki' } },
  { method: 'POST', path: `/main/admin/runs/${unknownId}/skip`, type: json, body: { fence: 1, reason: 'broken' } },
  { method: 'GET', path: '/token/token' },
  { method: 'GET', path: '/sessioncheck' },
  { method: 'GET', path: '/portal' },
  { method: 'GET', path: '/register/config' },
  { method: 'GET', path: '/register/values?name=team&search=e' },
  { method: 'GET', path: '/register/openapi.json' },
  {
    method: 'POST',
    path: '/register/submit',
    type: json,
    body: {
      attributes: { userName: 'joan', mail: 'j@x.io', givenName: 'J', sn: 'C', team: 'payments' },
      reason: 'new',
    },
  },
  { method: 'POST', path: '/register/verify', type: form, body: { token: 'abc' } },
  {
    method: 'POST',
    path: '/call',
    type: json,
    body: {
      name: 'crm-sync',
      uidAttributeName: 'uid',
      user: { attributes: [{ name: 'uid', values: ['ada'] }], groups: ['everyone'] },
      requestParams: { 'UNISON.EXEC.TYPE': 'UNISON.EXEC.ASYNC' },
      reason: 'fuzzed',
    },
  },
  { method: 'GET', path: `/call/${unknownId}?after=1` },
  { method: 'GET', path: '/account/sessions' },
  { method: 'GET', path: '/account/factors' },
  { method: 'DELETE', path: `/account/sessions/${unknownId}` },
  { method: 'POST', path: '/account/factors/totp/confirm', type: json, body: { enrolment: unknownId, code: '123456' } },
  { method: 'POST', path: '/auth/formLogin', type: form, body: { user: 'nobody', pwd: 'wrong' } },
  { method: 'GET', path: '/auth/formLogin' },
  { method: 'GET', path: '/auth/idp/portal/.well-known/openid-configuration' },
  {
    method: 'GET',
    path: '/auth/idp/portal/auth?client_id=workflows&response_type=code&scope=openid&redirect_uri=http://127.0.0.1/callback&state=s&nonce=n',
  },
  {
    method: 'POST',
    path: '/auth/idp/portal/token',
    type: form,
    body: {
      grant_type: 'authorization_code',
      client_id: 'workflows',
      code: 'x',
      redirect_uri: 'http://127.0.0.1/callback',
    },
  },
  { method: 'POST', path: '/auth/idp/portal/device_authorization', type: form, body: { client_id: 'workflows' } },
  { method: 'GET', path: '/auth/idp/portal/me' },
  { method: 'GET', path: '/dev-issuer/.well-known/openid-configuration' },
  { method: 'GET', path: '/check_alive' },
]

/** Requests to the token service, with each of the tokens, and to the admission webhook. */
export function tokenServiceSamples(endpoint: string, tokens: readonly string[], pod: unknown): Sample[] {
  const exchange = {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    requested_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    audience: `https://${endpoint}.example.com`,
  }
  const namespace = 'shop'
  const review = {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid: unknownId,
      kind: { group: '', version: 'v1', kind: 'Pod' },
      resource: { group: '', version: 'v1', resource: 'pods' },
      operation: 'CREATE',
      namespace,
      userInfo: {
        username: 'system:serviceaccount:kube-system:replicaset-controller',
        groups: ['system:authenticated'],
      },
      object: pod,
    },
  }
  return [
    ...tokens.flatMap((token) => [
      { method: 'POST', path: `/sts/${endpoint}/token`, type: form, body: { ...exchange, subject_token: token } },
      {
        method: 'POST',
        path: `/sts/${endpoint}/token`,
        type: form,
        body: {
          grant_type: exchange.grant_type,
          subject_token: token,
          subject_token_type: exchange.subject_token_type,
        },
      },
    ]),
    { method: 'POST', path: `/sts/${endpoint}/token`, type: json, body: { ...exchange, subject_token: tokens[0] } },
    { method: 'GET', path: `/sts/${endpoint}/issuer-docs` },
    { method: 'GET', path: `/sts/${endpoint}/.well-known/openid-configuration` },
    ...Array.from({ length: tokens.length }, () => ({ method: 'POST', path: '/sts/inject', type: json, body: review })),
    { method: 'POST', path: '/sts/inject?timeout=5s', type: json, body: { ...review, request: { uid: unknownId } } },
  ]
}

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND']
const types = [
  json,
  scim,
  form,
  'text/plain',
  'multipart/form-data; boundary=x',
  'application/json; charset=utf-16',
  ';;',
]

/** The same requests for the same seed: samples of every API, changed in one to three places, by each actor in turn. */
export function* fuzzedRequests(count: number, seed: number, samples: readonly Sample[]): Generator<FuzzedRequest> {
  let state = seed >>> 0
  const next = (below: number): number => {
    // mulberry32
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * below)
  }
  const pick = <T>(list: readonly T[]): T => list[next(list.length)] as T
  const values = hostileValues(2000, seed)
  const odd = (): unknown =>
    pick<() => unknown>([
      () => pick(values),
      () => pick(values).slice(0, 20),
      () => null,
      () => '',
      () => next(2) === 0,
      () => (next(2) === 0 ? -1 : 1e308) * next(1000),
      () => [],
      () => ({}),
      () => [pick(values), null, [[]]],
      () => ({ [pick(values)]: pick(values), __proto: {}, constructor: 1 }),
      () => Array.from({ length: next(600) }, (_, i) => ({ value: `v${i}` })),
      () => '\ud800\0',
    ])()
  const change = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null || next(5) === 0) return odd()
    if (Array.isArray(value)) {
      const at = next(value.length + 1)
      return at === value.length ? [...value, odd()] : value.map((one, i) => (i === at ? change(one) : one))
    }
    const entries = Object.entries(value)
    const at = next(entries.length + 2)
    if (at >= entries.length) return { ...value, [pick([pick(values).slice(0, 40), 'id', 'schemas', 'meta'])]: odd() }
    if (next(6) === 0) return Object.fromEntries(entries.filter((_, i) => i !== at))
    return Object.fromEntries(entries.map(([name, one], i) => [name, i === at ? change(one) : one]))
  }
  const changePath = (path: string): string => {
    const [place = '', query] = path.split('?')
    if (query !== undefined && next(2) === 0) {
      const pairs = query.split('&').map((pair) => pair.split('='))
      const pair = pick(pairs)
      pair[next(2)] = encodeURIComponent(String(odd()).toWellFormed()).slice(0, 6000)
      return `${place}?${pairs.map((each) => each.join('=')).join('&')}`
    }
    const parts = place.split('/')
    parts[1 + next(parts.length - 1)] = pick([
      () => encodeURIComponent(pick(values).toWellFormed()).slice(0, 3000),
      () => pick(['..', '%2e%2e', '%00', '', '%zz', '%2F', ';x=1', 'Users', 'Groups', 'null', '__proto__']),
    ])()
    return `${parts.join('/')}${query === undefined ? '' : `?${query}`}`
  }
  for (let number = 0; number < count; number++) {
    const sample = pick(samples)
    let { method, path, type = json } = sample
    let value = sample.body
    let raw: string | Buffer | undefined
    const headers: Record<string, string> = {
      accept: pick([json, scim, 'text/html', '*/*', ';;;']),
      'x-requested-with': 'f',
    }
    for (let changes = next(4); changes > 0; changes--) {
      const what = next(12)
      if (what < 5 && value !== undefined) value = change(value)
      else if (what < 7) path = changePath(path)
      else if (what === 7) method = pick(methods)
      else if (what === 8) type = pick(types)
      else if (what === 9)
        headers[pick(['if-match', 'if-none-match', 'range', 'idempotency-key', 'x-page-of', 'origin'])] = pick(values)
          .replace(/[^\x21-\x7e]/g, '?')
          .slice(0, 500)
      else if (what === 10 && value !== undefined) raw = Buffer.from(JSON.stringify(value)).subarray(0, next(200))
      else if (what === 11 && next(3) === 0 && sample.body !== undefined) raw = pick(heavyBodies)()
    }
    const text = (): string =>
      type === form && typeof value === 'object'
        ? new URLSearchParams(
            Object.entries(value ?? {}).map(([name, one]) => [name, String(one)] as [string, string]),
          ).toString()
        : (JSON.stringify(value) ?? '')
    const hasBody = value !== undefined && method !== 'GET' && method !== 'HEAD'
    // A logout would end the session that the other requests need.
    if (/^\/main\/logout/.test(path)) path = '/main/user'
    yield {
      number,
      as: actors[number % actors.length] ?? 'anonymous',
      method,
      path: encodeURI(path).replaceAll('%25', '%').replaceAll('#', '%23'),
      headers: { ...headers, ...(hasBody ? { 'content-type': type } : {}) },
      ...(hasBody ? { body: raw ?? text() } : {}),
    }
  }
}

/** Bodies of about a megabyte that are the most expensive to read. */
export const heavyBodies: readonly (() => string)[] = [
  () => '['.repeat(1_000_000),
  () => '{"a":'.repeat(200_000),
  () => `[${'{},'.repeat(330_000)}{}]`,
  () => `[${'[],'.repeat(330_000)}[]]`,
  () => `{${Array.from({ length: 80_000 }, (_, i) => `"k${i}":1`).join()}}`,
  () => `{${'"userName":"a",'.repeat(65_000)}"userName":"b"}`,
  () => `{"userName":"${'\\u0041'.repeat(170_000)}"}`,
  () => `{"displayName":"${'\\"'.repeat(500_000)}"}`,
  () =>
    `{"userName":"u","emails":[${Array.from({ length: 25_000 }, (_, i) => `{"value":"${i}@x.io","type":"t${i}"}`).join()}]}`,
  () =>
    `{"Operations":[${Array.from({ length: 900 }, (_, i) => `{"op":"add","path":"emails[value eq \\"${i}\\"].type","value":[${'1,'.repeat(400)}1]}`).join()}]}`,
  () =>
    `{"Operations":[{"op":"add","path":"members","value":[${Array.from({ length: 45_000 }, (_, i) => `{"value":"m${i}"}`).join()}]}]}`,
  () => `{"Operations":[${'{"method":"POST","path":"/Users","data":{"userName":1}},'.repeat(18_000)}{}]}`,
  () =>
    `[${Array.from({ length: 900 }, (_, i) => `{"uuid":"${i}","name":1,"reason":2,"subjects":[${'3,'.repeat(300)}3],"x":[]}`).join()}]`,
  () =>
    `{"user":{"attributes":[${Array.from({ length: 1900 }, (_, i) => `{"name":"${i}","values":[${'1,'.repeat(20)}1]}`).join()}]}}`,
  () => `{"attributes":{${Array.from({ length: 990 }, (_, i) => `"a${i}":{"b":[${'0,'.repeat(50)}0]}`).join()}}}`,
  () => 'a=b&'.repeat(250_000),
  () => '9'.repeat(1_000_000),
  () => `{"userName":${'9'.repeat(500_000)}}`,
  () => `"${'x'.repeat(1_000_000)}`,
]
