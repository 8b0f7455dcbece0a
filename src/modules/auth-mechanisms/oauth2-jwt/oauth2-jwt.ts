import { BoundedCache } from '#kernel/bounded-cache.ts'
import { secretHash } from '#kernel/ids.ts'
import { answerPreflight, crossOriginHeaders } from '#modules/auth-mechanisms/oauth2-jwt/cross-origin.ts'
import { type OAuth2JwtConfig, parameters, parseOAuth2Jwt } from '#modules/auth-mechanisms/oauth2-jwt/parameters.ts'
import { claimAttributes } from '#modules/shared/login/claim-attributes.ts'
import { linkedForMillis, linkSubject } from '#modules/shared/login/linked-subject.ts'
import { bearerRefusals, readBearer } from '#protocols/jwt/bearer.ts'
import { DiscoveredKeySet } from '#protocols/jwt/discovered-key-set.ts'
import { type KeySet, pinnedKeySet } from '#protocols/jwt/key-set.ts'
import {
  clockTolerance,
  createTokenVerifier,
  TokenRejected,
  type VerifiedToken,
} from '#protocols/jwt/token-verifier.ts'
import type { VerificationKey } from '#protocols/jwt/verification-key.ts'
import { type AuthMechanism, type AuthOutcome, defineAuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import type { ModuleHost } from '#sdk/module/host.ts'

/** A bearer JWT, verified with a pinned key or the issuer's published keys. */
export default defineAuthMechanism<OAuth2JwtConfig>({
  className: 'auth.OAuth2JWT',
  aliases: ['com.tremolosecurity.proxy.auth.oauth2.OAuth2JWT'],
  parameters,
  parse: parseOAuth2Jwt,
  callers: ({ issuer, link }) => (link.lookup === undefined ? { issuer } : 'people'),
  create: async (config, host) => createMechanism(config, host, await keysOf(config, host)),
})

/** How many verified tokens are remembered. */
const rememberedTokens = 10_000

interface Remembered {
  readonly outcome: AuthOutcome
  readonly key: VerificationKey
  readonly root: string
}

async function keysOf(config: OAuth2JwtConfig, host: ModuleHost): Promise<KeySet> {
  if (config.keyName === undefined) {
    return new DiscoveredKeySet({ issuer: config.issuer, clock: host.clock, log: host.log })
  }
  const key = await host.keys.publicKey(config.keyName)
  if (key === undefined) throw new Error(`there is no key named "${config.keyName}"`)
  return pinnedKeySet(key)
}

function createMechanism(config: OAuth2JwtConfig, host: ModuleHost, keys: KeySet): AuthMechanism {
  const { crossOrigin, link } = config
  const tolerance = config.clockTolerance ?? (host.ownsIssuer?.(config.issuer) === true ? 0 : clockTolerance)
  const verifier = createTokenVerifier({ ...config, clockTolerance: tolerance }, keys, host.clock)
  const remembered = new BoundedCache<Remembered>(rememberedTokens, host.clock)
  const refusals = bearerRefusals(config.realm, config.scope)
  const refuse = (reason: string) => refusals.badToken(reason, 'The token does not identify a caller')

  async function identify({ claims, key, expires }: VerifiedToken, root: string, hash: string): Promise<AuthOutcome> {
    const uid = Object.hasOwn(claims, link.uidAttr) ? claims[link.uidAttr] : undefined
    if (typeof uid !== 'string') return refuse(`the claim "${link.uidAttr}" is missing or no text`)
    const attributes = claimAttributes(claims)
    if (attributes === undefined) return refuse('two claims differ in letter case only')
    const linked = await linkSubject(attributes, link, root, host)
    if (linked.kind === 'refused') return refuse(linked.reason)
    const outcome: AuthOutcome = { kind: 'authenticated', subject: linked.subject }
    remembered.set(hash, { outcome, key, root }, keepUntil(expires))
    return outcome
  }

  /** A token that names someone in the directory is not remembered for long, since the entry may change. */
  function keepUntil(expires: Date): Date {
    if (link.lookup === undefined) return expires
    return new Date(Math.min(expires.getTime(), host.clock().getTime() + linkedForMillis))
  }

  return {
    async begin({ request, root }) {
      const bearer = readBearer(request.headers)
      if (bearer.kind === 'none') return refusals.noToken
      if (bearer.kind === 'malformed') return refusals.badHeader(bearer.reason)
      const hash = secretHash(bearer.token)
      const known = remembered.get(hash)
      if (known?.key.current === true && known.root === root && keys.fresh()) return known.outcome
      try {
        return await identify(await verifier.verify(bearer.token), root, hash)
      } catch (error) {
        if (error instanceof TokenRejected) return refusals.badToken(error.message, error.description)
        throw error
      }
    },
    ...(crossOrigin === undefined
      ? {}
      : {
          preflight: (request) => answerPreflight(request, crossOrigin),
          responseHeaders: (request) => crossOriginHeaders(request, crossOrigin),
        }),
  }
}
