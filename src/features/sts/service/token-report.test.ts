import { expect, test } from 'vitest'
import type { StsEndpointConfig } from '#config/configuration/configuration.ts'
import type { IssuerConfig } from '#config/configuration/issuer.ts'
import { silentLogger } from '#kernel/logger.ts'
import { KeyStore } from '#keys/key-store.ts'
import { memoryDatabase } from '#testing/databases/memory-database.ts'
import { openMain, someone } from '#testing/modules/main-fixture.ts'
import { SetClock, tokenIssuer, tokenKeyRings } from '#testing/sts/token-keys-fixture.ts'
import { TokenReport } from './token-report.ts'

const admin = someone('root', ['people', 'admins'])

const endpoint = {
  at: 'values.yaml:3:5',
  rules: [],
  issuer: tokenIssuer(),
  endpoint: { name: 'aws', audience: 'sts.amazonaws.com', clusters: ['local'], subjectIssuers: [] },
} as unknown as StsEndpointConfig

async function open(issuers: readonly IssuerConfig[] = []) {
  const store = new KeyStore(memoryDatabase())
  const clock = new SetClock()
  const rings = tokenKeyRings({ store, clock })
  const tokenReport = new TokenReport({
    store,
    log: silentLogger,
    configuration: () => ({ stsEndpoints: [endpoint], issuers }),
  })
  const { send } = await openMain({ params: { administrators: 'filter;(groups=admins)' }, tokenReport })
  return { store, clock, rings, send, get: () => send('GET', '/admin/tokens', undefined, admin) }
}

test('administrators see endpoints and the dates of their keys, and no private part', async () => {
  const { get, rings, store, clock, send } = await open()
  await expect(send('GET', '/admin/tokens')).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
  expect((await get()).body.issuers).toMatchObject([{ name: 'aws', keys: [] }])
  await rings.tend('aws')
  clock.pass(60)
  const { body, text } = await get()
  expect(body.issuers).toEqual([
    {
      name: 'aws',
      kind: 'workloads',
      at: 'values.yaml:3:5',
      issuer: 'https://issuer.example.com/aws',
      algorithm: 'ES256',
      maxTokenSeconds: 900,
      audience: 'sts.amazonaws.com',
      accepts: ['local'],
      rules: 0,
      keys: [
        expect.objectContaining({
          state: 'active',
          algorithm: 'ES256',
          given: false,
          created: '2030-01-01T00:00:00.000Z',
        }),
      ],
      publications: [],
    },
  ])
  const stored = JSON.stringify(await store.list())
  const [sealed] = /"sealed":"([^"]+)"/.exec(stored)?.slice(1) ?? []
  expect(sealed).toBeDefined()
  expect(text).not.toContain(sealed)
})

test('keys that cannot be read are absent instead of empty', async () => {
  const { get, store } = await open()
  await store.swap('aws', 0, { nonsense: true })
  const [shown] = (await get()).body.issuers
  expect(shown).not.toHaveProperty('keys')
})

test('an OpenID Connect issuer has the address at which the caller reaches it', async () => {
  const issuerAt = (...hosts: string[]): IssuerConfig =>
    ({
      name: hosts.join(),
      at: 'token.yaml:3:5',
      hosts,
      mount: '/auth/idp/people',
      keys: tokenIssuer(),
      rules: [],
      trusts: [],
    }) as unknown as IssuerConfig
  const { send } = await open([
    issuerAt('other.example.com', 'gw.example.com'),
    issuerAt('login.example.com'),
    issuerAt('*'),
  ])
  const { body } = await send('GET', '/admin/tokens', undefined, admin)
  expect(body.issuers.slice(1).map(({ issuer }: { issuer: string }) => issuer)).toEqual([
    'https://gw.example.com/auth/idp/people',
    'https://login.example.com/auth/idp/people',
    'https://gw.example.com/auth/idp/people',
  ])
})
