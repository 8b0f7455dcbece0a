import { generateKeyPairSync } from 'node:crypto'
import type { TokenEndpoint } from '#config/configuration/token-endpoint.ts'
import type { TokenKeys } from '#config/configuration/token-keys.ts'
import type { GrantSource } from '#features/sts/grants/token-grants.ts'
import type { BreakerParts } from '#features/sts/service/api-server-breaker.ts'
import { createIssuingState, TokenIssuing } from '#features/sts/service/token-issuing.ts'
import { GatewayError } from '#kernel/errors.ts'
import { Issues } from '#kernel/issues.ts'
import { silentLogger } from '#kernel/logger.ts'
import { MemoryRateLimits } from '#kernel/rate-limit.ts'
import { parseTemplate } from '#kernel/template.ts'
import { discoveryDocument } from '#protocols/sts/discovery-document.ts'
import { localSigner, publicTokenKey } from '#protocols/sts/signed-token.ts'
import { RuleEvaluator } from '#requests/routing/rule-evaluator.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import { type MappingRule, prepareMapping } from '#sdk/mapper/mapping.ts'
import { parseRule } from '#sdk/rule/rule.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParseContext } from '#testing/modules/fake-parse.ts'
import { FakeCluster } from '#testing/sts/fake-cluster.ts'

const pairs = {
  RS256: generateKeyPairSync('rsa', { modulusLength: 2048 }),
  ES256: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  ES384: generateKeyPairSync('ec', { namedCurve: 'P-384' }),
  EdDSA: generateKeyPairSync('ed25519'),
}

export const defaultEndpoint: TokenEndpoint = {
  name: 'cloud',
  audience: 'https://cloud.example.com',
  issuer: 'https://issuer.example.com/cloud',
  preset: undefined,
  algorithm: 'RS256',
  ttlSeconds: 900,
  jti: true,
  subject: parseTemplate('${token_sub}', { keys: false, attributes: true }),
  clusters: ['k8s'],
  subjectIssuers: [],
  incomingAudience: 'gatehouse-sts',
  acceptApiServerAudience: false,
  acceptTokensWithoutPod: false,
  offlineSeconds: 0,
  rateLimit: { burst: 1000, perMinute: 60_000 },
  awsTags: undefined,
  awsRoles: [],
}

export interface IssuingFixtureOptions {
  readonly endpoint?: Partial<TokenEndpoint>
  /** RFC 4515; those of shop:cart if absent. */
  readonly rules?: readonly string[]
  readonly claims?: readonly MappingRule[]
  readonly clusters?: readonly string[]
  readonly breaker?: Omit<BreakerParts, 'clock'>
  readonly grants?: GrantSource
}

/** A time that only the test moves; the present by default, for clients that read the real clock. */
export class TestClock {
  millis: number
  constructor(millis = Math.floor(Date.now() / 1000) * 1000) {
    this.millis = millis
  }
  readonly now = (): Date => new Date(this.millis)
}

/** A token service with one endpoint, and with the test's clusters, keys and audit. */
export async function issuingFixture(options: IssuingFixtureOptions = {}, clock = new TestClock()) {
  const endpoint = { ...defaultEndpoint, ...options.endpoint }
  const names = options.clusters ?? ['k8s']
  const clusters = new Map(names.map((name) => [name, new FakeCluster(() => clock.millis)]))
  const targets = new Map(Array.from(clusters, ([name, cluster]) => [name, cluster.target()]))
  const pair = pairs[endpoint.algorithm]
  const published = publicTokenKey(pair.publicKey)
  const keys: TokenKeys = {
    active: async () => localSigner(published.kid, endpoint.algorithm, pair.privateKey),
    published: async () => [published],
    documents: async () => ({
      discovery: discoveryDocument({ issuer: endpoint.issuer, algorithms: [endpoint.algorithm], claims: [] }),
      keys: { keys: [published] },
      maxAgeSeconds: 300,
    }),
    isRevoked: async (_, kid) => kid === 'revoked',
  }
  const issues = new Issues()
  const context = fakeParseContext()
  const rules = (options.rules ?? ['(&(namespace=shop)(saname=cart))']).flatMap(
    (constraint) => parseRule('filter', constraint, [], issues, context) ?? [],
  )
  const host = fakeModuleHost()
  const claims = await prepareMapping(options.claims ?? [], issues, context).create(host)
  if (!issues.ok) throw new Error(JSON.stringify(issues.list))
  const audit: AuditEntry[] = []
  const failing: { audit?: Error } = {}
  const counted: string[] = []
  const evaluator = new RuleEvaluator(host.directory, new Map(), silentLogger)
  const rateLimits = new MemoryRateLimits(clock.now)
  const issuing = new TokenIssuing({
    clock: clock.now,
    log: silentLogger,
    audit: {
      append: async (rows) => {
        if (failing.audit !== undefined) throw failing.audit
        audit.push(...rows)
      },
    },
    rateLimits,
    keys,
    state: createIssuingState(clock.now, rateLimits, options.breaker),
    endpoints: new Map([[endpoint.name, { endpoint, rules, claims }]]),
    target: (name) => {
      const target = targets.get(name)
      if (target === undefined) throw new GatewayError('INTERNAL', `no target ${name}`)
      return target
    },
    decide: (subject, wanted) => evaluator.decide(subject, wanted),
    grants: options.grants,
    count: (...labels) => counted.push(labels.join(' ').trim()),
  })
  const cluster = (name = names[0] ?? ''): FakeCluster => {
    const found = clusters.get(name)
    if (found === undefined) throw new Error(`no cluster ${name}`)
    return found
  }
  return {
    clock,
    endpoint,
    issuing,
    cluster,
    audit,
    failing,
    counted,
    keys,
    publicKey: pair.publicKey,
    exchange: (token: string, requestId = 'request-1') =>
      issuing.exchange({
        endpoint: endpoint.name,
        requestId,
        remoteAddress: '10.1.2.3',
        subjectToken: async () => token,
      }),
  }
}

export type IssuingFixture = Awaited<ReturnType<typeof issuingFixture>>
