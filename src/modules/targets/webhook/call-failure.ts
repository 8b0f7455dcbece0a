import { type ErrorCode, GatewayError, type GatewayErrorOptions } from '#kernel/errors.ts'

/** A call that did not succeed. */
export class CallFailure extends GatewayError {
  /** The server may have done what it was asked for all the same. */
  readonly mayBeDone: boolean
  /** The same call may succeed a little later. */
  readonly mayPass: boolean

  constructor(
    code: ErrorCode,
    detail: string,
    { mayBeDone, mayPass, ...options }: GatewayErrorOptions & { mayBeDone: boolean; mayPass: boolean },
  ) {
    super(code, detail, options)
    this.mayBeDone = mayBeDone
    this.mayPass = mayPass
  }
}

const unreachable = new Set([408, 425, 429])
const badValues = new Set([400, 413, 414, 422])
/** Said before anything is done. */
const surelyNotDone = new Set([408, 425, 429])

/** What a status that is neither success nor absence means. The body is not told: it may repeat what was sent. */
export function statusFailure(
  what: string,
  status: number,
  { writes, retryAfter }: { readonly writes: boolean; readonly retryAfter: number | undefined },
): CallFailure {
  const detail = `${what} was answered with status ${status}`
  const plain = { mayBeDone: false, mayPass: false }
  if (unreachable.has(status) || (status >= 500 && status !== 501 && status !== 505)) {
    return new CallFailure('TARGET_UNREACHABLE', detail, {
      mayBeDone: writes && !surelyNotDone.has(status),
      mayPass: true,
      ...(retryAfter === undefined ? {} : { retryAfter: Math.ceil(retryAfter / 1000) }),
    })
  }
  if (status >= 300 && status < 400) {
    return new CallFailure('TARGET_FAILED', `${detail}: redirects are not followed`, plain)
  }
  if (status === 401 || status === 403) {
    return new CallFailure('TARGET_FAILED', `${detail}: our credentials are not accepted`, plain)
  }
  if (status === 409 && writes) return new CallFailure('CONFLICT', detail, { ...plain, keyword: 'uniqueness' })
  if (status === 412 && writes) return new CallFailure('VERSION_MISMATCH', detail, plain)
  if (badValues.has(status) && writes) {
    return new CallFailure('BAD_REQUEST', detail, {
      ...plain,
      publicText: 'The downstream system does not accept these values.',
      keyword: 'invalidValue',
    })
  }
  return new CallFailure('TARGET_FAILED', detail, plain)
}
