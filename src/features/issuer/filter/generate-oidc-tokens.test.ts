import { describe, expect, test } from 'vitest'
import type { Issuers } from '#features/issuer/service/issuers.ts'
import type { MintedTokens, TokenMinting } from '#features/issuer/service/token-minting.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import generate from './generate-oidc-tokens.ts'
import { latestTokensSlot, restoreRequest, restoreTokens, tokensSlot } from './session-tokens.ts'

const ada = subject('uid=ada,o=Tremolo')
const minted: MintedTokens = {
  issuer: 'https://login.test/auth/idp/people',
  clientId: 'k8s',
  idToken: 'e.y.z',
  expires: new Date(60_000),
  claims: { sub: 'ada' },
  refreshToken: 'r',
  refreshExpires: new Date(120_000),
}

const companion = { id: 'session-2', application: 'login', idleSeconds: 900 }

async function begin(
  params: ParamValues,
  attempt: { readonly nobody?: true; readonly noSession?: true; readonly denied?: true } = {},
) {
  const calls: TokenMinting[] = []
  const prepared = generate.prepare(
    fakeParams({ idpName: 'people', trustName: 'https://k8s.test', ...params }),
    fakeParams({}),
    noIssues(),
    fakeParseContext(),
  )
  const issuers: Pick<Issuers, 'mint' | 'companion'> = {
    companion: () => companion,
    mint: async (call: TokenMinting) => {
      calls.push(call)
      return attempt.denied === true ? undefined : minted
    },
  }
  const mechanism = await prepared.create(Object.assign(fakeModuleHost(), { issuers }))
  const outcome = await mechanism.begin({
    request: fakeRequest({ url: 'https://portal.test/' }),
    subject: attempt.nobody === true ? undefined : ada,
    root: 'o=Tremolo',
    ...(attempt.noSession === true ? {} : { sessionId: 'session-1' }),
  })
  return { outcome, calls }
}

describe('auth.GenerateOIDCTokens', () => {
  test('stores the tokens in the session, by issuer and trust, and marks the latest', async () => {
    const { outcome, calls } = await begin({ doNotTieSession: 'false' })
    expect(calls).toMatchObject([{ issuer: 'people', trust: 'https://k8s.test', sessionId: 'session-1', subject: ada }])
    if (outcome.kind !== 'passed') throw new Error(outcome.kind)
    const slots = outcome.session?.slots ?? {}
    const slot = tokensSlot('people', 'https://k8s.test')
    expect(slots[latestTokensSlot]).toBe(slot)
    expect(slot).toMatch(/^[\w.:-]{1,100}$/)
    expect(restoreTokens(slots[slot])).toEqual({ ...minted, idp: 'people', trust: 'https://k8s.test' })
    expect(outcome.session?.companions).toBeUndefined()
  })

  test.each([{}, { doNotTieSession: 'true' }])('gives tokens a session of their own with %j', async (params) => {
    const { outcome, calls } = await begin({ ...params, overrideURL: 'https://login.test/x' })
    expect(calls).toMatchObject([{ sessionId: 'session-2', origin: 'https://login.test' }])
    if (outcome.kind !== 'passed') throw new Error(outcome.kind)
    expect(outcome.session?.companions).toEqual([companion])
    const slot = tokensSlot('people', 'https://k8s.test')
    expect(restoreTokens(outcome.session?.slots?.[slot])).toMatchObject({ refreshToken: 'r', companion: 'session-2' })
  })

  test('creates no tokens without a user, without a session, or if no rule passes', async () => {
    expect(await begin({}, { nobody: true })).toMatchObject({ outcome: { kind: 'rejected' }, calls: [] })
    const tied = { doNotTieSession: 'false' }
    expect(await begin(tied, { noSession: true })).toEqual({ outcome: { kind: 'passed' }, calls: [] })
    expect((await begin({}, { denied: true })).outcome).toEqual({ kind: 'passed' })
  })

  test('says which tokens a caller without a session may read', async () => {
    const { outcome, calls } = await begin({ overrideURL: 'https://login.test' }, { noSession: true })
    const slot = tokensSlot('people', 'https://k8s.test')
    const slots = { [latestTokensSlot]: slot, [slot]: expect.anything() }
    expect([outcome, calls]).toEqual([{ kind: 'passed', session: { slots } }, []])
    if (outcome.kind !== 'passed') throw new Error(outcome.kind)
    const requested = { idp: 'people', trust: 'https://k8s.test', origin: 'https://login.test' }
    expect(restoreRequest(outcome.session?.slots?.[slot])).toEqual(requested)
  })

  test('refers to its issuer and trust, and rejects an invalid URL', () => {
    const issues = noIssues()
    const context = fakeParseContext()
    const params = { idpName: 'people', trustName: 'x y', overrideURL: 'javascript:alert(1)' }
    generate.prepare(fakeParams(params), fakeParams({}), issues, context)
    expect(issueTexts(issues.list)).toHaveLength(1)
    expect(context.references.map(({ name }) => name)).toEqual(['people', 'people x y'])
  })

  test.each([undefined, null, 'x', 1, {}, { idp: 'a', trust: 'b' }])('tokens are not read from %j', (value) => {
    expect(restoreTokens(value as never)).toBeUndefined()
  })
})
