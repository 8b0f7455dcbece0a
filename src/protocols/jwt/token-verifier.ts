import type { JWTPayload } from 'jose'
import * as errors from 'jose/errors'
import { jwtVerify } from 'jose/jwt/verify'
import type { Clock } from '#kernel/clock.ts'
import { type KeySet, signatureAlgorithms, type VerificationKey } from '#protocols/jwt/keys.ts'

export interface TokenRules {
  readonly issuer: string
  /** At least one; the token must be for one of them. */
  readonly audiences: readonly string[]
  /** Accept a token without an issue time. */
  readonly allowNoIat: boolean
  /** Minutes before its `iat` for which a token is accepted. */
  readonly notBeforeMinutes: number
  /** By how many seconds clocks may differ; default: `clockTolerance`. */
  readonly clockTolerance?: number
}

export interface VerifiedToken {
  readonly claims: JWTPayload
  readonly key: VerificationKey
  readonly expires: Date
}

/** The token is not accepted. `message` is for the log; `description` contains nothing of the token and may be sent. */
export class TokenRejected extends Error {
  readonly description: string
  /** No key of the issuer signed it. */
  readonly foreign: boolean

  constructor(reason: string, description: string, cause?: unknown, foreign = false) {
    super(reason, cause === undefined ? undefined : { cause })
    this.name = 'TokenRejected'
    this.description = description
    this.foreign = foreign
  }
}

/** Seconds by which this machine's clock and the issuer's may differ. */
export const clockTolerance = 30
/** Longer tokens are rejected unread. */
export const longestToken = 16 * 1024
/** The last second that a Date can represent. */
const endOfTime = 8.64e12

export interface TokenVerifier {
  /** Throws TokenRejected, or TARGET_UNREACHABLE if the issuer's keys are not available. */
  verify(token: string): Promise<VerifiedToken>
}

/** Throws a plain Error without an audience: the check must not be skipped. */
export function createTokenVerifier(rules: TokenRules, keys: KeySet, clock: Clock): TokenVerifier {
  if (rules.audiences.length === 0) throw new Error('at least one audience is needed')
  const requiredClaims = rules.allowNoIat ? ['exp'] : ['exp', 'iat']
  const descriptions = new Map([...sameForAll, ['aud', otherAudience(rules.audiences)]])
  return {
    async verify(token) {
      if (token.length > longestToken) throw new TokenRejected('the token is too long', invalid)
      let used: VerificationKey | undefined
      try {
        const { payload } = await jwtVerify(
          token,
          async ({ alg, kid }) => {
            used = await keys.find(alg, kid)
            if (used === undefined) {
              throw new TokenRejected('the token is signed by an unknown key', invalid, undefined, true)
            }
            return used.key
          },
          {
            algorithms: [...signatureAlgorithms],
            issuer: rules.issuer,
            audience: [...rules.audiences],
            clockTolerance: rules.clockTolerance ?? clockTolerance,
            currentDate: clock(),
            requiredClaims,
          },
        )
        if (used === undefined) throw new TokenRejected('the token was verified without a key', invalid)
        return { claims: payload, key: used, expires: checkTimes(payload, rules, clock()) }
      } catch (error) {
        throw error instanceof errors.JOSEError
          ? rejection(error, clock().getTime() / 1000 - (rules.clockTolerance ?? clockTolerance), descriptions)
          : error
      }
    },
  }
}

function checkTimes(claims: JWTPayload, rules: TokenRules, now: Date): Date {
  const { exp = Number.NaN, iat } = claims
  if (!(exp > 0 && exp <= endOfTime)) throw new TokenRejected('"exp" is out of range', invalid)
  const earliest = now.getTime() / 1000 + (rules.clockTolerance ?? clockTolerance) + rules.notBeforeMinutes * 60
  if (iat !== undefined && iat > earliest) throw new TokenRejected('"iat" is in the future', tooEarly)
  return new Date(exp * 1000)
}

const invalid = 'The token is not valid'
const tooEarly = 'The token is not valid yet'
const expired = 'The token is expired'
const sameForAll: readonly (readonly [claim: string, description: string])[] = [
  ['iss', 'The token is from another issuer'],
  ['nbf', tooEarly],
]

/** For a caller with a token for others: which audience to request from its issuer. */
export const otherAudience = (wanted: readonly string[]): string =>
  `The token is for another audience; wanted: ${wanted.join(' or ')}`

/**
 * A token that expired before `earliest` is reported as expired, even if its audience is wrong, which jose checks
 * first.
 */
function rejection(
  error: errors.JOSEError,
  earliest: number,
  descriptions: ReadonlyMap<string, string>,
): TokenRejected {
  if (error instanceof errors.JWTExpired) return new TokenRejected(error.message, expired, error)
  const claim = error instanceof errors.JWTClaimValidationFailed ? error.claim : ''
  const exp = error instanceof errors.JWTClaimValidationFailed && claim === 'aud' ? error.payload.exp : undefined
  if (typeof exp === 'number' && exp <= earliest) return new TokenRejected('the token is expired', expired, error)
  const foreign = error instanceof errors.JWSSignatureVerificationFailed
  return new TokenRejected(`${error.code}: ${error.message}`, descriptions.get(claim) ?? invalid, error, foreign)
}
