import type { JWTPayload } from 'jose'
import { decodeProtectedHeader } from 'jose/decode/protected_header'
import * as errors from 'jose/errors'
import { jwtVerify } from 'jose/jwt/verify'
import type { Clock } from '#kernel/clock.ts'
import { isJsonObject, type JsonValue } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import {
  DiscoveredKeySet,
  type DiscoveryTimes,
  discoveryTimes,
  type FetchLimits,
} from '#protocols/jwt/discovered-key-set.ts'
import { type KeySet, signatureAlgorithms } from '#protocols/jwt/keys.ts'
import type { AccountTokenVerdict } from './cluster.ts'

/** Seconds by which this machine's clock and the cluster's may differ. */
const clockTolerance = 30
const longestToken = 16 * 1024
const accountName = /^system:serviceaccount:([^:]+):([^:]+)$/
/** The last second that a Date can represent. */
const endOfTime = 8.64e12

/** Throws TARGET_UNREACHABLE if the cluster's keys are not available. The caller checks the audience. */
export async function verifyServiceAccountToken(
  token: string,
  keys: ClusterKeySet,
  clock: Clock,
): Promise<AccountTokenVerdict> {
  if (token.length > longestToken) return refused('the token is too long')
  try {
    const { alg = '', kid } = decodeProtectedHeader(token)
    if (!signatureAlgorithms.includes(alg)) return refused(`the algorithm "${alg.slice(0, 16)}" is not accepted`)
    const key = await keys.find(alg, kid)
    if (key === undefined) return { kind: 'refused', foreign: true, reason: 'the token is signed by an unknown key' }
    const { payload } = await jwtVerify(token, key.key, {
      algorithms: [alg],
      clockTolerance,
      currentDate: clock(),
      requiredClaims: ['iss', 'sub', 'aud', 'exp'],
      ...(keys.issuer === undefined ? {} : { issuer: keys.issuer }),
    })
    return readClaims(payload, keys.issuer, clock())
  } catch (error) {
    if (error instanceof errors.JWTExpired) return expired
    if (error instanceof errors.JOSEError) {
      const foreign = error instanceof errors.JWSSignatureVerificationFailed
      return { kind: 'refused', foreign, reason: `${error.code}: ${error.message}` }
    }
    if (error instanceof TypeError || error instanceof SyntaxError) return refused('the token is not a JWT')
    throw error
  }
}

function readClaims(claims: JWTPayload, issuer: string | undefined, now: Date): AccountTokenVerdict {
  const { iss, sub = '', aud = [], exp = Number.NaN, jti } = claims
  if (issuer === undefined || iss !== issuer) return refused('the token is from another issuer')
  if (!(exp > 0 && exp <= endOfTime)) return refused('"exp" is out of range')
  // The tolerance is for clocks that differ; a token issued for an expired one would have no lifetime left.
  if (exp * 1000 <= now.getTime()) return expired
  const [, namespace, account] = accountName.exec(sub) ?? []
  if (namespace === undefined || account === undefined) return refused('the token is not of a service account')
  const bound = claims['kubernetes.io']
  if (!isJsonObject(bound)) return refused('the token is not bound, as service-account tokens are')
  const owner = memberOf(bound, 'serviceaccount')
  if (bound['namespace'] !== namespace || owner['name'] !== account) {
    return refused('the token says two different things about its service account')
  }
  const pod = memberOf(bound, 'pod')
  const node = memberOf(bound, 'node')
  const extras = new Map<string, string>()
  const keep = (name: string, value: unknown): void => {
    if (typeof value === 'string' && value !== '') extras.set(name, value)
  }
  keep('pod-name', pod['name'])
  keep('pod-uid', pod['uid'])
  keep('node-name', node['name'])
  keep('node-uid', node['uid'])
  if (typeof jti === 'string' && jti !== '') extras.set('credential-id', `JTI=${jti}`)
  return {
    kind: 'verified',
    token: {
      issuer,
      username: sub,
      uid: typeof owner['uid'] === 'string' ? owner['uid'] : '',
      audiences: Array.isArray(aud) ? aud : [aud],
      expires: new Date(exp * 1000),
      extras,
    },
  }
}

const memberOf = (object: Readonly<Record<string, JsonValue>>, name: string): Readonly<Record<string, JsonValue>> => {
  const member = object[name]
  return isJsonObject(member) ? member : {}
}

const expired: AccountTokenVerdict = {
  kind: 'refused',
  foreign: false,
  reason: 'the token is expired',
  expired: true,
}

const refused = (reason: string): AccountTokenVerdict => ({ kind: 'refused', foreign: false, reason })

/** Gets a JSON document from the API server itself, with the gateway's credentials. */
type FetchFromCluster = (path: string, limits: FetchLimits) => Promise<unknown>

interface ClusterKeySet extends KeySet {
  /** The cluster's name in `iss`; known after the first key was found. */
  readonly issuer: string | undefined
}

const discoveryPath = '/.well-known/openid-configuration'
const keysPath = '/openid/v1/jwks'
/** A placeholder for a URL. Requests go to the API server instead. */
const placeholder = 'https://cluster.invalid'

/**
 * The keys with which a cluster signs service-account tokens. The URLs in its discovery document are for others,
 * and often can't be reached from here, so both documents are read from the API server's own URL.
 */
export function createClusterKeySet(
  fetch: FetchFromCluster,
  clock: Clock,
  log: Logger,
  times: DiscoveryTimes = discoveryTimes,
): ClusterKeySet {
  let issuer: string | undefined
  const keys = new DiscoveredKeySet({
    issuer: placeholder,
    owner: 'the cluster',
    clock,
    log,
    times,
    fetch: async (url, limits) => {
      if (url.pathname !== discoveryPath) return fetch(keysPath, limits)
      const document = await fetch(discoveryPath, limits)
      const named = isJsonObject(document) ? document['issuer'] : undefined
      if (typeof named !== 'string' || named === '') throw new Error('the cluster does not say what its issuer is')
      issuer = named
      return { issuer: placeholder, jwks_uri: `${placeholder}${keysPath}` }
    },
  })
  return {
    get issuer() {
      return issuer
    },
    find: (algorithm, kid) => keys.find(algorithm, kid),
    fresh: () => keys.fresh(),
  }
}
