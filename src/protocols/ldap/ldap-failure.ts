import { ResultCodeError } from 'ldapts'
import { type ErrorCode, GatewayError, type GatewayErrorOptions } from '#kernel/errors.ts'
import { oneLine } from '#kernel/text/one-line.ts'

/** The result codes (RFC 4511 4.1.9, RFC 4528) that callers use. */
export const resultCodes = {
  sizeLimitExceeded: 4,
  noSuchAttribute: 16,
  attributeOrValueExists: 20,
  noSuchObject: 32,
  invalidCredentials: 49,
  objectClassViolation: 65,
  entryAlreadyExists: 68,
  other: 80,
  assertionFailed: 122,
} as const

/** The names of RFC 4511 4.1.9, 4528 and 3909, for operators. */
const names: Readonly<Record<number, string>> = {
  1: 'operationsError',
  2: 'protocolError',
  3: 'timeLimitExceeded',
  4: 'sizeLimitExceeded',
  7: 'authMethodNotSupported',
  8: 'strongerAuthRequired',
  10: 'referral',
  11: 'adminLimitExceeded',
  12: 'unavailableCriticalExtension',
  13: 'confidentialityRequired',
  16: 'noSuchAttribute',
  17: 'undefinedAttributeType',
  18: 'inappropriateMatching',
  19: 'constraintViolation',
  20: 'attributeOrValueExists',
  21: 'invalidAttributeSyntax',
  32: 'noSuchObject',
  33: 'aliasProblem',
  34: 'invalidDNSyntax',
  36: 'aliasDereferencingProblem',
  48: 'inappropriateAuthentication',
  49: 'invalidCredentials',
  50: 'insufficientAccessRights',
  51: 'busy',
  52: 'unavailable',
  53: 'unwillingToPerform',
  54: 'loopDetect',
  64: 'namingViolation',
  65: 'objectClassViolation',
  66: 'notAllowedOnNonLeaf',
  67: 'notAllowedOnRDN',
  68: 'entryAlreadyExists',
  69: 'objectClassModsProhibited',
  71: 'affectsMultipleDSAs',
  80: 'other',
  118: 'canceled',
  122: 'assertionFailed',
}

const uniqueness: GatewayErrorOptions = { keyword: 'uniqueness' }
const soon: GatewayErrorOptions = { retryAfter: 1 }

/** The error for a result. Any other code is TARGET_FAILED. */
const meanings = new Map<number, readonly [ErrorCode, GatewayErrorOptions?]>([
  [16, ['BAD_REQUEST']],
  [17, ['BAD_REQUEST']],
  [19, ['BAD_REQUEST']],
  [20, ['BAD_REQUEST']],
  [21, ['BAD_REQUEST']],
  [34, ['BAD_REQUEST']],
  [51, ['TARGET_UNREACHABLE', soon]],
  [52, ['TARGET_UNREACHABLE', soon]],
  [64, ['BAD_REQUEST']],
  [65, ['BAD_REQUEST']],
  [67, ['BAD_REQUEST']],
  [68, ['CONFLICT', uniqueness]],
  [69, ['BAD_REQUEST']],
  [122, ['VERSION_MISMATCH']],
])

/** The operation, in words for the log, without values. */
export function asLdapFailure(error: unknown, server: string, asked: string): GatewayError {
  if (error instanceof GatewayError) return error
  if (!(error instanceof ResultCodeError)) return unreachable(error, server, asked)
  const text = oneLine(error.message.slice(0, 1000), 300)
  const name = names[error.code]
  const detail = `${server}: ${asked}: result ${error.code}${name === undefined ? '' : ` (${name})`}: ${text}`
  if (error.code === 10)
    return new GatewayError('TARGET_FAILED', `${detail}: referrals are not followed`, { cause: error })
  const [code, options] = meaningOf(error.code, text)
  const attribute = code === 'BAD_REQUEST' ? blamedAttribute(text) : undefined
  const publicText =
    attribute === undefined ? undefined : (shown = `"${attribute}"`) => `The value of ${shown} cannot be stored.`
  return new GatewayError(code, detail, { cause: error, attribute, publicText, ...options })
}

export const unreachable = (cause: unknown, server: string, asked: string, retryAfter = 1): GatewayError =>
  new GatewayError(
    'TARGET_UNREACHABLE',
    `${server}: ${asked}: ${oneLine(cause instanceof Error ? (cause.message.split('\n').at(-1) ?? '') : String(cause), 300)}`,
    { cause, retryAfter },
  )

/** The server's result of a failure; undefined if there was none. */
export function resultCodeOf(error: unknown): number | undefined {
  const cause = error instanceof GatewayError ? error.cause : error
  return cause instanceof ResultCodeError ? cause.code : undefined
}

/** OpenLDAP's `unique` overlay returns a constraint violation, like every policy. */
const meaningOf = (code: number, text: string): readonly [ErrorCode, GatewayErrorOptions?] =>
  code === 19 && /\bunique\b/i.test(text) ? ['CONFLICT', uniqueness] : (meanings.get(code) ?? ['TARGET_FAILED'])

/** OpenLDAP and 389 name the attribute; others do not. */
function blamedAttribute(text: string): string | undefined {
  const found =
    /^([A-Za-z][\w;-]{0,63}): (?:value #|attribute type|multiple values|modify\/)/.exec(text) ??
    /attribute '?([A-Za-z][\w;-]{0,63})'? not allowed/.exec(text) ??
    /requires attribute '?([A-Za-z][\w;-]{0,63})'?/.exec(text)
  return found?.[1]
}
