import { expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import { silentLogger } from '#kernel/logger.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import { newTokenText } from './client-token.ts'
import type { UsableToken } from './client-token-store.ts'
import { ClientTokens, checkedMillis } from './client-tokens.ts'
import scimToken from './scim-token.ts'

/** Tokens by their texts; counts the statements. */
class Store {
  readonly tokens = new Map<string, UsableToken>()
  readonly used: string[] = []
  reads = 0
  down = false

  add(client = 'okta', more: Partial<UsableToken> = {}): string {
    const text = newTokenText()
    this.tokens.set(text, {
      id: `id of ${client}`,
      client,
      name: 'default',
      created: new Date(0),
      isOfTenant: false,
      ...more,
    })
    return text
  }

  async find(text: string): Promise<UsableToken | undefined> {
    this.reads++
    if (this.down) throw new GatewayError('TARGET_UNREACHABLE', 'down')
    return this.tokens.get(text)
  }

  async list(): Promise<readonly UsableToken[]> {
    return [...this.tokens.values()]
  }

  async use(id: string): Promise<void> {
    this.used.push(id)
    if (this.down) throw new GatewayError('TARGET_UNREACHABLE', 'down')
  }
}

function open() {
  const store = new Store()
  const time = { now: 1_000_000 }
  const tokens = new ClientTokens(store, () => new Date(time.now), silentLogger)
  const begin = async (authorization: string | undefined, params: ParamValues = {}) => {
    const prepared = scimToken.prepare(fakeParams(params), fakeParams({}), noIssues(), fakeParseContext())
    const host = { ...fakeModuleHost(), clientTokens: tokens }
    const mechanism = await prepared.create(host)
    const request = fakeRequest(authorization === undefined ? {} : { headers: { authorization } })
    return mechanism.begin({ request, subject: undefined, root: 'o=Tremolo' })
  }
  return { store, time, tokens, begin }
}

test('a token is its client, as rules see it', async () => {
  const { store, begin } = open()
  const outcome = await begin(`Bearer ${store.add()}`)
  if (outcome.kind !== 'authenticated') throw new Error(outcome.kind)
  expect([outcome.subject.uid, outcome.subject.dn.toString()]).toEqual(['okta', 'uid=okta,ou=tokens,o=Tremolo'])
})

test('other tokens, and those of other clients, are refused with a challenge and without a hint', async () => {
  const { store, begin } = open()
  const text = store.add()
  for (const [given, params] of [
    [undefined, {}],
    [`Bearer ${newTokenText()}`, {}],
    [`Bearer ${text.slice(0, -1)}`, {}],
    [`Bearer ${text}x`, {}],
    [`Basic ${text}`, {}],
    [`Bearer ${text}`, { client: ['entra', 'google'] }],
  ] as const) {
    const outcome = await begin(given, params)
    if (outcome.kind !== 'rejected') throw new Error(`${given} is ${outcome.kind}`)
    expect(outcome.headers?.['www-authenticate']).toContain('realm="scim"')
    expect(JSON.stringify(outcome.headers)).not.toContain('okta')
  }
  expect((await begin(`Bearer ${text}`, { client: ['entra', 'okta'] })).kind).toBe('authenticated')
})

test('a token of a tenant is accepted by its own chain only', async () => {
  const { store, begin } = open()
  const text = store.add('acme', { isOfTenant: true })
  expect((await begin(`Bearer ${text}`)).kind).toBe('rejected')
  expect((await begin(`Bearer ${text}`, { client: 'acme' })).kind).toBe('authenticated')
})

test.each([{ client: '' }, { client: [] }, { client: ['', ''] }])('%j does not accept every client', (params) => {
  const issues = noIssues()
  scimToken.prepare(fakeParams(params), fakeParams({}), issues, fakeParseContext())
  const remedy = 'name one, or remove the parameter to accept the tokens of all clients of the configuration'
  expect(issueTexts(issues.list)).toEqual([`error params.client: "client" names no client: ${remedy}`])
})

test('a remembered token costs no statement, a text of another form none at all', async () => {
  const { store, tokens } = open()
  const text = store.add()
  const many = await Promise.all(Array.from({ length: 20 }, () => tokens.verify(text)))
  expect(many.every((token) => token?.client === 'okta')).toBe(true)
  for (let n = 0; n < 100; n++) await tokens.verify(text)
  expect([store.reads, store.used]).toEqual([1, ['id of okta']])
  await tokens.verify('password')
  expect(store.reads).toBe(1)
  const wrong = newTokenText()
  for (let n = 0; n < 3; n++) expect(await tokens.verify(wrong)).toBeUndefined()
  expect(store.reads).toBe(2)
})

test('a revocation counts within the bound, an expiry at once', async () => {
  const { store, time, tokens } = open()
  const revoked = store.add('okta')
  const expiring = store.add('entra', { expires: new Date(time.now + 1000) })
  expect(await tokens.verify(revoked)).toBeDefined()
  expect(await tokens.verify(expiring)).toBeDefined()
  store.tokens.delete(revoked)
  time.now += 1000
  expect(await tokens.verify(expiring)).toBeUndefined()
  time.now += checkedMillis - 1000
  expect(await tokens.verify(revoked)).toBeUndefined()
})

test('the last use is noted once a minute, and its failure refuses no one', async () => {
  const { store, time, tokens } = open()
  const text = store.add()
  for (let second = 0; second <= 120; second++) {
    await tokens.verify(text)
    time.now += 1000
  }
  expect(store.used).toHaveLength(3)
  time.now += 60_000
  await tokens.verify(text)
  store.down = true
  time.now += 1000
  expect(await tokens.verify(text)).toBeDefined()
  time.now += checkedMillis
  await expect(tokens.verify(text)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
  store.down = false
  expect(await tokens.verify(text)).toBeDefined()
})
