import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fromTokenFile } from '@aws-sdk/credential-providers'
import { WorkloadIdentityCredential } from '@azure/identity'
import { ExternalAccountClient } from 'google-auth-library'
import { createRemoteJWKSet, customFetch, exportJWK, generateKeyPair, type JWTPayload, jwtVerify, SignJWT } from 'jose'
import { discovery, customFetch as openidFetch } from 'openid-client'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { parseTemplate } from '#kernel/template.ts'
import { amazonSts, decide, entra, googleSts, type StandIn, startStandIn } from '#testing/sts/consumer-stand-ins.ts'
import { type Consumer, consumerRules, type Presented, refusalsBy } from '#testing/sts/token-consumers.ts'
import { type IssuingFixture, type IssuingFixtureOptions, issuingFixture } from '#testing/sts/token-issuing-fixture.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-consumers-'))
const tokenFile = join(folder, 'token')
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const role = 'arn:aws:iam::123456789012:role/cart'

interface Published {
  readonly fixture: IssuingFixture
  setUp(): Omit<Presented, 'token' | 'now'>
  /** Writes a new token to the client's file, like a sidecar. */
  write(): Promise<string>
}

let fixture: IssuingFixture
let keys: Presented['keys']

async function publish(endpoint: NonNullable<IssuingFixtureOptions['endpoint']>): Promise<Published> {
  fixture = await issuingFixture({ endpoint })
  keys = (await fixture.keys.documents(fixture.endpoint.name)).keys
  const { issuer, audience } = fixture.endpoint
  return {
    fixture,
    setUp: () => ({ keys, issuer, audience }),
    write: async () => {
      const { token } = await fixture.exchange(await fixture.cluster().token())
      writeFileSync(tokenFile, token)
      return token
    },
  }
}

let standIn: StandIn | undefined
afterEach(async () => {
  await standIn?.close()
  standIn = undefined
})

describe('Amazon', () => {
  it('gives the AWS SDK credentials for the token in the file', async () => {
    const tags = {
      principal: new Map([['team', parseTemplate('${namespace}', { keys: false, attributes: true })]]),
      transitive: [],
    }
    const { setUp, write } = await publish({
      preset: 'aws',
      audience: 'sts.amazonaws.com',
      awsTags: tags,
      awsRoles: [role],
    })
    standIn = await startStandIn(amazonSts, setUp)
    const provide = fromTokenFile({
      webIdentityTokenFile: tokenFile,
      roleArn: role,
      clientConfig: { endpoint: standIn.url, region: 'eu-central-1' },
    })
    await write()
    expect(await provide()).toMatchObject({ accessKeyId: 'AKIATEST', sessionToken: 'session' })
    expect(standIn.verdicts).toEqual([[]])
  })

  it('rejects the same token with a trailing line end, which the SDK sends unchanged', async () => {
    const { setUp, write } = await publish({ preset: 'aws', audience: 'sts.amazonaws.com' })
    standIn = await startStandIn(amazonSts, setUp)
    writeFileSync(tokenFile, `${await write()}\n`)
    const provide = fromTokenFile({
      webIdentityTokenFile: tokenFile,
      roleArn: role,
      clientConfig: { endpoint: standIn.url, region: 'eu-central-1', maxAttempts: 1 },
    })
    await expect(provide()).rejects.toThrow()
    expect(standIn.verdicts[0]).toEqual(['not a compact JWT, byte for byte'])
  })
})

describe('Microsoft', () => {
  it('gives @azure/identity a token for the assertion in the file', async () => {
    const audience = 'api://AzureADTokenExchange'
    const { setUp, write } = await publish({ preset: 'azure', audience })
    await write()
    const verdicts: string[][] = []
    const credential = new WorkloadIdentityCredential({
      tenantId: '11111111-1111-1111-1111-111111111111',
      clientId: '22222222-2222-2222-2222-222222222222',
      tokenFilePath: tokenFile,
      disableInstanceDiscovery: true,
      httpClient: {
        // The library accepts only TLS, so the stand-in answers in its place.
        sendRequest: async (request) => {
          const { pathname, origin } = new URL(request.url)
          const { headers } = request
          headers.set('content-type', 'application/json')
          if (pathname.endsWith('/.well-known/openid-configuration')) {
            const tenant = `${origin}/11111111-1111-1111-1111-111111111111`
            const document = {
              issuer: `${tenant}/v2.0`,
              authorization_endpoint: `${tenant}/oauth2/v2.0/authorize`,
              token_endpoint: `${tenant}/oauth2/v2.0/token`,
              jwks_uri: `${tenant}/discovery/v2.0/keys`,
            }
            return { request, status: 200, headers, bodyAsText: JSON.stringify(document) }
          }
          const { answer, refusals } = await decide(entra, pathname, String(request.body), setUp)
          verdicts.push(refusals)
          return { request, status: answer.status, headers, bodyAsText: answer.body }
        },
      },
    })
    expect((await credential.getToken('https://vault.azure.net/.default')).token).toBe('entra-token')
    expect(verdicts).toEqual([[]])
  })
})

describe('Google', () => {
  it('gives google-auth-library a token for the one in the file', async () => {
    const provider = '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/k8s'
    const { setUp, write } = await publish({ preset: 'gcp', audience: `https:${provider}`, algorithm: 'ES256' })
    standIn = await startStandIn(googleSts, setUp)
    await write()
    const client = ExternalAccountClient.fromJSON({
      type: 'external_account',
      audience: provider,
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      token_url: `${standIn.url}/v1/token`,
      credential_source: { file: tokenFile },
    })
    expect((await client?.getAccessToken())?.token).toBe('google-token')
    expect(standIn.verdicts).toEqual([[]])
  })
})

describe('a standard client', () => {
  it('finds the keys through the discovery document, and verifies the token with them', async () => {
    const { fixture: issuing, write } = await publish({})
    const { issuer, audience } = issuing.endpoint
    const documents = await issuing.keys.documents('cloud')
    const served = new Map<string, unknown>([
      [`${issuer}/.well-known/openid-configuration`, documents.discovery],
      [`${issuer}/certs`, documents.keys],
    ])
    const answer = async (address: string | URL): Promise<Response> => {
      const document = served.get(String(address))
      return document === undefined ? new Response(null, { status: 404 }) : Response.json(document)
    }
    const client = await discovery(new URL(issuer), 'client', undefined, undefined, {
      [openidFetch]: (address) => answer(address),
    })
    const metadata = client.serverMetadata()
    expect(metadata.issuer).toBe(issuer)
    const remote = createRemoteJWKSet(new URL(metadata.jwks_uri ?? ''), { [customFetch]: (address) => answer(address) })
    const { payload } = await jwtVerify(await write(), remote, { issuer, audience })
    expect(payload.sub).toBe('k8s:shop:cart')
  })
})

describe('every consumer', () => {
  const consumers = Object.keys(consumerRules) as Consumer[]

  it.each(consumers)(
    '%s accepts the tokens of its preset, with the longest lifetime and every claim',
    async (preset) => {
      const { setUp, write } = await publish({ preset, ttlSeconds: 3600 })
      expect(await refusalsBy(preset, { ...setUp(), token: await write(), now: new Date() })).toEqual([])
    },
  )

  it('accepts the token of an endpoint without a preset', async () => {
    const { setUp, write } = await publish({})
    const token = await write()
    for (const consumer of consumers) {
      expect([consumer, await refusalsBy(consumer, { ...setUp(), token, now: new Date() })]).toEqual([consumer, []])
    }
  })
})

describe('the stand-ins reject what the vendors reject', () => {
  const now = new Date()
  const seconds = Math.floor(now.getTime() / 1000)
  const issuer = 'https://issuer.example.com'
  const audience = 'aud'
  const good: JWTPayload = { iss: issuer, aud: audience, sub: 'k8s:shop:cart', iat: seconds, exp: seconds + 900 }
  const fixedClaims = { cluster: 'k8s', namespace: 'shop', saname: 'cart' }
  let privateKey: Awaited<ReturnType<typeof generateKeyPair>>['privateKey']
  let jwk: Record<string, unknown>
  beforeAll(async () => {
    const pair = await generateKeyPair('RS256', { extractable: true })
    privateKey = pair.privateKey
    jwk = { ...(await exportJWK(pair.publicKey)), kid: 'k', use: 'sig', alg: 'RS256' }
  })

  const cases: readonly [
    Consumer,
    string,
    Readonly<Record<string, unknown>>,
    Record<string, unknown>?,
    { kid?: string }?,
  ][] = [
    ['aws', 'fractions', { exp: seconds + 900.5 }],
    ['aws', 'no sub', { sub: undefined }],
    ['aws', 'two audiences without azp', { aud: [audience, 'other'] }],
    ['aws', 'key_ops', {}, { key_ops: ['verify'] }],
    ['aws', 'a key for encryption', {}, { use: 'enc' }],
    ['aws', 'a key without kid', {}, { kid: undefined }, {}],
    ['aws', 'tags as texts', { 'https://aws.amazon.com/tags': { principal_tags: { team: 'shop' } } }],
    ['aws', 'an issuer with a port', { iss: `${issuer}:8443` }],
    ['aws', 'a short subject', { sub: 'abc' }],
    ['azure', 'a life of 26 hours', { exp: seconds + 26 * 3600 }],
    ['azure', 'another letter case', { iss: issuer.toUpperCase() }],
    ['azure', 'a long subject', { sub: 's'.repeat(601) }],
    ['gcp', 'a subject of 128 bytes', { sub: 's'.repeat(128) }],
    ['gcp', 'x5c in the key', {}, { x5c: ['MIIB'] }],
    ['gcp', 'no kid', {}, {}, {}],
    ['gcp', 'a life of two days', { exp: seconds + 48 * 3600 }],
    ['gcp', 'iat to come', { iat: seconds + 120 }],
    ['vault', 'a slash at the end of the issuer', { iss: `${issuer}/` }],
    ['kubernetes', 'nbf two minutes ahead', { nbf: seconds + 120 }],
    ['anthropic', 'a life of two hours', { exp: seconds + 7200 }],
    ['anthropic', 'a nested claim', { namespace: { name: 'shop' } }],
    ['anthropic', 'no kid', {}, {}, {}],
  ]
  it.each(cases)('%s: %s', async (consumer, _, claims, key = {}, header = { kid: 'k' }) => {
    const token = await new SignJWT({ ...good, ...fixedClaims, ...claims })
      .setProtectedHeader({ alg: 'RS256', ...header })
      .sign(privateKey)
    const presented = { keys: { keys: [{ ...jwk, ...key }] }, issuer, audience, token, now }
    expect(await refusalsBy(consumer, presented)).not.toEqual([])
  })

  it.each(Object.keys(consumerRules) as Consumer[])('%s accepts the unchanged one', async (consumer) => {
    const token = await new SignJWT({ ...good, ...fixedClaims })
      .setProtectedHeader({ alg: 'RS256', kid: 'k' })
      .sign(privateKey)
    expect(await refusalsBy(consumer, { keys: { keys: [jwk] }, issuer, audience, token, now })).toEqual([])
  })
})
