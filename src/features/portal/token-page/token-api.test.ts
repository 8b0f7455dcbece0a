import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import {
  latestTokensSlot,
  type SessionTokens,
  storeRequest,
  storeTokens,
  tokensSlot,
} from '#features/issuer/filter/session-tokens.ts'
import type { Issuers } from '#features/issuer/service/issuers.ts'
import type { RefreshTokenState, TokenMinting } from '#features/issuer/service/token-minting.ts'
import type { TokenUser } from '#features/portal/contract/token.ts'
import type { TokenCall } from '#features/sts/service/token-call.ts'
import type { TokenIssuing } from '#features/sts/service/token-issuing.ts'
import type { JsonValue } from '#kernel/json.ts'
import type { CompanionSession } from '#sdk/auth/session.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import tokenApi from './token-api.ts'

const common = {
  displayNameAttribute: 'cn',
  'frontPage.title': 'Tokens',
  'frontPage.text': 'Take one.',
  homeURL: '/',
  logoutURL: '/logout',
  warnMinutesLeft: '5',
}
const tokens: SessionTokens = {
  idp: 'people',
  trust: 'k8s',
  issuer: 'https://login.test/auth/idp/people',
  clientId: 'kubernetes',
  idToken: 'e.y.z',
  expires: new Date(60_000),
  claims: { sub: 'ada' },
  refreshToken: 'refresh-1',
  refreshExpires: new Date(90_000),
}
const companion: CompanionSession = { id: 'session-2', application: 'login', idleSeconds: 900 }
const requested = {
  [latestTokensSlot]: tokensSlot('people', 'k8s'),
  [tokensSlot('people', 'k8s')]: storeRequest({ idp: 'people', trust: 'k8s', origin: 'https://login.test' }),
}
const certificate = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'

interface Call {
  readonly method?: string
  readonly path?: string
  readonly mount?: string
  readonly kept?: SessionTokens | undefined
  readonly login?: string
  readonly now?: number
  readonly refresh?: RefreshTokenState
  /** What the chain of a caller without a session leaves; undefined for a caller with one. */
  readonly slots?: Readonly<Record<string, JsonValue>>
  readonly denied?: true
}

async function open(params: ParamValues, call: Call = {}) {
  const slots = new Map<string, JsonValue>()
  if (call.kept !== undefined) {
    slots.set(latestTokensSlot, tokensSlot('people', 'k8s')).set(tokensSlot('people', 'k8s'), storeTokens(call.kept))
  }
  const mints: TokenMinting[] = []
  const started: (readonly [CompanionSession, Date])[] = []
  const issuers: Pick<Issuers, 'mint' | 'refreshState' | 'companion'> = {
    companion: () => companion,
    mint: async (minting: TokenMinting) => {
      mints.push(minting)
      if (call.denied === true) return undefined
      return { ...tokens, idToken: 'new', refreshToken: 'refresh-2' }
    },
    refreshState: async () => call.refresh ?? 'unused',
  }
  const host = fakeModuleHost({ now: () => call.now ?? 0 })
  const keys = { ...host.keys, certificate: async (name: string) => (name === 'ca' ? certificate : undefined) }
  const prepared = tokenApi.prepare(fakeParams({ ...common, ...params }), noIssues(), fakeParseContext())
  const filter = await prepared.create(Object.assign(host, { keys, issuers }))
  const login = call.login ?? 'ada'
  const exchange: Exchange = {
    request: fakeRequest({ method: call.method ?? 'GET', url: 'https://portal.test/' }),
    application: 'portal',
    mount: call.mount ?? '/k8stoken',
    pathInfo: call.path ?? '/token/user',
    subject: subject('uid=ada,o=Tremolo', {
      ...{ uid: [login], cn: ['Ada'], roles: ['a', 'b'], otp: ['JBSW Y3DP'], auth_time: ['7'] },
    }),
    ...(call.slots === undefined
      ? {
          session: {
            id: 'session-1',
            chain: 'test',
            level: 20,
            started: new Date(0),
            authenticated: new Date(0),
            expires: new Date(900_000),
            read: async (slot: string) => slots.get(slot),
            write: async (slot: string, value: JsonValue | undefined) =>
              void (value === undefined ? slots.delete(slot) : slots.set(slot, value)),
            mark: async () => {},
          },
        }
      : {
          sessionless: {
            slots: call.slots,
            startCompanion: async (...given: readonly [CompanionSession, Date]) => void started.push(given),
          },
        }),
  }
  const answer = async () => filter.handle(exchange, async () => ({ status: 404, headers: {} }))
  const user = async () => JSON.parse(String((await answer()).body)) as TokenUser
  return { answer, user, mints, slots, started }
}

const kubectl = { tokenClassName: 'com.tremolosecurity.scalejs.KubectlTokenLoader' }
const renewing = { ...kubectl, renewTokens: 'true' }

describe('filters.TokenApi', () => {
  test('a new id_token requires logout and login, unless renewTokens says otherwise', async () => {
    const reading = await open(kubectl, { kept: tokens })
    expect((await reading.user()).state).toMatchObject({ refreshToken: 'unused', renewable: false })
    const making = await open(kubectl, { kept: tokens, method: 'POST' })
    await expect(making.answer()).rejects.toMatchObject({
      status: 403,
      publicText: 'To get a new token, log out and log in again.',
    })
    expect(making.mints).toEqual([])
  })

  test('D20: reading creates nothing; only POST creates tokens', async () => {
    const reading = await open(renewing, { kept: tokens })
    expect(await reading.user()).toEqual({
      displayName: 'Ada',
      token: { id_token: 'e.y.z', refresh_token: 'refresh-1' },
      expires: '1970-01-01T00:01:00.000Z',
      claims: { sub: 'ada' },
      state: { idToken: 'valid', refreshToken: 'unused', refreshExpires: '1970-01-01T00:01:30.000Z', renewable: true },
    })
    expect(reading.mints).toEqual([])
    const making = await open(renewing, { kept: tokens, method: 'POST' })
    expect((await making.user()).token).toEqual({ id_token: 'new', refresh_token: 'refresh-2' })
    expect(making.mints).toMatchObject([{ issuer: 'people', trust: 'k8s', sessionId: 'session-1', how: 'token page' }])
    expect(JSON.stringify([...making.slots])).toContain('refresh-2')
  })

  test('a caller without a session gets tokens with a session of their own, whole or not at all', async () => {
    const commands = { kubectlTemplate: 'cluster', kubectlWinUsage: 'https://k8s.test' }
    const { user, mints, started } = await open({ ...kubectl, ...commands }, { slots: requested, now: 10_000 })
    const { token } = await user()
    expect(token).toEqual({
      ...{ id_token: 'new', refresh_token: 'refresh-2' },
      ...{ 'kubectl Command': 'cluster', 'kubectl Windows Command': 'https://k8s.test' },
    })
    // They end by the login that the caller's own token is of.
    const authenticated = new Date(7_000)
    const call = { issuer: 'people', trust: 'k8s', sessionId: 'session-2', origin: 'https://login.test', authenticated }
    expect([mints, started]).toMatchObject([[call], [[companion, authenticated]]])

    const ended = await open({ ...kubectl, ...commands }, { slots: requested, refresh: 'ended' })
    await expect(ended.answer()).rejects.toMatchObject({ status: 500 })
    const unwritable = { kubectlTemplate: 'echo $user_id$', uidAttributeName: 'uid' }
    const hostile = await open({ ...kubectl, ...unwritable }, { slots: requested, login: 'a\0b' })
    await expect(hostile.answer()).rejects.toMatchObject({ status: 500 })
    for (const refused of [{ slots: {} }, { slots: requested, denied: true } as const]) {
      const { answer, started: none } = await open(kubectl, refused)
      await expect(answer()).rejects.toMatchObject({ status: 403 })
      expect(none).toEqual([])
    }
  })

  test('D20: a hostile login is one value of the command, and of the file', async () => {
    const login = 'x; rm -rf ~ #$(id)`id`"\''
    const params = {
      ...kubectl,
      uidAttributeName: 'uid',
      kubectlTemplate: 'kubectl --user=$user_id$',
      k8sURL: 'https://k8s.test',
    }
    const { token } = await (await open(params, { kept: tokens, login })).user()
    expect(token['kubectl Command']).toBe(`kubectl --user='x; rm -rf ~ #$(id)\`id\`"'\\'''`)
    expect(parse(token['kubeconfig'] ?? '')).toMatchObject({
      'current-context': 'kubernetes',
      users: [{ name: `${login}@kubernetes` }],
    })
  })

  test('shows the state of the tokens, and no refresh token that is useless', async () => {
    const used = await (await open(kubectl, { kept: tokens, refresh: 'used', now: 60_000 })).user()
    expect(used.state).toMatchObject({ idToken: 'expired', refreshToken: 'used' })
    expect(used.token).toEqual({ id_token: 'e.y.z' })
    const { refreshToken: _, refreshExpires: __, ...only } = tokens
    const untied = await open(kubectl, { kept: only })
    expect((await untied.user()).state).toEqual({ idToken: 'valid', refreshToken: 'none', renewable: false })
    const renewal = (await open(renewing, { kept: only, method: 'POST' })).answer()
    await expect(renewal).rejects.toMatchObject({ status: 403, publicText: expect.stringContaining('log out and') })
    expect(await (await open(kubectl)).user()).toEqual({ displayName: 'Ada', token: {} })
  })

  test('returns certificates in the forms that commands need', async () => {
    const params = {
      ...kubectl,
      k8sCaCertName: 'ca',
      unisonCaCertName: 'gone',
      kubectlTemplate: 'echo -e "$k8s_newline_cert$" $ou_b64_cert$',
    }
    const { token } = await (await open(params, { kept: tokens })).user()
    expect(token['Kubernetes API Server CA Certificate']).toBe(certificate)
    expect(token['OpenUnison Server CA Certificate']).toBeUndefined()
    expect(token['kubectl Command']).toBe(
      String.raw`echo -e "-----BEGIN CERTIFICATE-----\\nAAAA\\n-----END CERTIFICATE-----" ''`,
    )
  })

  test('shows attributes, a password or the key of an authenticator', async () => {
    const attributes = await open({ tokenClassName: 'AttributeToken', attributes: ['roles', 'cn', 'none'] })
    expect((await attributes.user()).token).toEqual({ roles: 'a, b', cn: 'Ada' })
    const password = await open({ tokenClassName: 'LoadToken', attributeName: 'cn' })
    expect((await password.user()).token).toEqual({ 'Temporary Password': 'Ada' })
    const totp = {
      tokenClassName: 'com.tremolosecurity.scalejs.token.totp.TOTPToken',
      attributeName: 'otp',
      headerTitle: 'A b',
    }
    expect((await (await open(totp)).user()).token).toEqual({
      'TOTP URL': 'otpauth://totp/A%20b:ada?secret=JBSWY3DP&issuer=A+b',
    })
    const config = JSON.parse(String((await (await open(totp, { path: '/token/config' })).answer()).body))
    expect(config).toMatchObject({
      qrCodeAttribute: 'TOTP URL',
      frontPage: { title: 'Tokens' },
      themePrimaryMain: '#3b5bdb',
    })
    await expect((await open(totp, { method: 'POST' })).answer()).rejects.toMatchObject({ status: 405 })
  })

  test.each([
    ['/k8stoken/token', '/user', 200],
    ['/k8stoken', '/token/config', 200],
    ['/k8stoken', '/user', 404],
    ['/k8stoken', '/tokens/user', 404],
    ['/k8stoken/token', '', 404],
    ['/k8stoken/token', '/user/more', 404],
  ])('at %s%s answers %i', async (mount, path, status) => {
    const answer = await (await open(kubectl, { mount, path })).answer().catch((error: { status: number }) => error)
    expect(answer.status).toBe(status)
  })

  test.each([
    [{ tokenClassName: 'StsToken', issuer: 'https://i.test' }, /"audience" is required for StsToken/],
    [{ tokenClassName: 'x.StsToken' }, /no token loader "x\.StsToken"/],
    [{ tokenClassName: 'KubectlTokenLoadr' }, /did you mean "KubectlTokenLoader"/],
    [{ ...kubectl, kubectlTemplate: 'echo $user_idd$' }, /no value "\$user_idd\$" \(did you mean "user_id"/],
    [{ ...kubectl, kubectlTemplate: 'echo `x`' }, /write \$\(…\)/],
    [{ ...kubectl, idpName: 'people' }, /go together/],
    [{ ...kubectl, k8sURL: 'nowhere' }, /web address/],
    [{ tokenClassName: 'AttributeToken' }, /"attributes" is required/],
    [{ tokenClassName: 'LoadToken' }, /"attributeName" is required/],
    [{ ...kubectl, themePrimaryMain: 'red' }, /color/],
  ])('check reports %j', (params, text) => {
    const issues = noIssues()
    tokenApi.prepare(fakeParams({ ...common, ...params }), issues, fakeParseContext())
    expect(issueTexts(issues.list).join('\n')).toMatch(text)
  })
})

describe('StsToken', () => {
  const documented = {
    ...common,
    additionalClaims: ['cluster', 'namespace', 'saname'],
    audience: 'acme',
    expiresSeconds: '900',
    issuer: 'https://tokens.acme.test/',
    keyName: 'idp-signing',
    minAlive: '15',
    minutesTTL: '15',
    tokenClassName: 'com.tremolosecurity.scalejs.token.sts.StsToken',
  }

  async function openSts(endpoint: string | undefined) {
    const issues = noIssues()
    const context = fakeParseContext()
    const prepared = tokenApi.prepare(fakeParams(documented), issues, context)
    const calls: TokenCall[] = []
    const service: Pick<TokenIssuing, 'endpointOf' | 'exchange'> = {
      endpointOf: ({ issuer, audience }) =>
        issuer === 'https://tokens.acme.test' && audience === 'acme' ? endpoint : undefined,
      exchange: async (call) => {
        calls.push(call)
        const token = `token for ${await call.subjectToken('acme')}`
        return { token, expires: new Date(60_000), expiresInSeconds: 60, refreshAfterSeconds: 40, workload: 'w' }
      },
    }
    const filter = await prepared.create(Object.assign(fakeModuleHost(), { tokens: service }))
    const send = async (headers: Record<string, string>) => {
      const request = fakeRequest({ headers })
      const caller = subject('username=x,o=Tremolo', { cn: ['cart'] })
      const exchange = { request, application: 'sts', mount: '/sts/token', pathInfo: '/user', subject: caller }
      return filter.handle(exchange, async () => ({ status: 404, headers: {} }))
    }
    return { send, calls, references: context.references, problems: issueTexts(issues.list) }
  }

  test('exchanges the bearer token of the caller at the endpoint of that issuer and audience', async () => {
    const { send, calls, references, problems } = await openSts('acme')
    const answer = await send({ authorization: 'Bearer a.b.c' })
    expect(answer.headers['cache-control']).toBe('no-store')
    expect(JSON.parse(String(answer.body))).toEqual({
      displayName: 'cart',
      token: { jwt: 'token for a.b.c', expires: '1970-01-01T00:01:00.000Z' },
    })
    expect(calls).toMatchObject([{ endpoint: 'acme', requestId: 'request-1', remoteAddress: '127.0.0.1' }])
    expect(references).toMatchObject([{ kind: 'endpoint of the token service', name: 'https://tokens.acme.test acme' }])
    expect(problems).toEqual(
      ['keyName', 'minutesTTL', 'additionalClaims'].map((name) =>
        expect.stringMatching(`^warning params.${name}: .* the endpoint of the token service says it$`),
      ),
    )
  })

  test('another credential than a bearer token is not exchanged', async () => {
    const { send } = await openSts('acme')
    await expect(send({ authorization: 'Basic YTpi' })).rejects.toMatchObject({ code: 'AUTH_REQUIRED' })
  })

  test('is not created without the endpoint', async () => {
    await expect(openSts(undefined)).rejects.toThrow('no endpoint with the issuer "https://tokens.acme.test"')
  })
})
