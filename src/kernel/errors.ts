import { withoutSecrets } from './secret-values.ts'

/**
 * Every failure a client can see: a stable code, the HTTP status and the text that may leave the process. Details
 * go to the log only.
 */
export const errorCodes = {
  BAD_REQUEST: { status: 400, text: 'The request is malformed.' },
  INVALID_JSON: { status: 400, text: 'The request body is not valid JSON.' },
  AUTH_REQUIRED: { status: 401, text: 'Authentication is required.' },
  AUTH_REJECTED: { status: 401, text: 'The credentials were not accepted.' },
  ACCESS_DENIED: { status: 403, text: 'You are not allowed to use this resource.' },
  WRONG_PASSWORD: { status: 403, text: 'The current password is wrong.' },
  NOT_FOUND: { status: 404, text: 'Nothing was found at this address.' },
  METHOD_NOT_ALLOWED: { status: 405, text: 'This method is not supported here.' },
  NOT_ACCEPTABLE: { status: 406, text: 'None of the accepted media types can be produced.' },
  REQUEST_TIMEOUT: { status: 408, text: 'The request took too long to arrive.' },
  CONFLICT: { status: 409, text: 'The request conflicts with the present state.' },
  ACCOUNT_EXISTS: { status: 409, text: 'An account with this name exists already.' },
  VERSION_MISMATCH: { status: 412, text: 'The resource was changed by someone else.' },
  OTHER_PERSON: { status: 412, text: 'Another user has signed in here.' },
  BODY_TOO_LARGE: { status: 413, text: 'The request body is too large.' },
  URI_TOO_LONG: { status: 414, text: 'The address is too long.' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, text: 'This media type is not supported here.' },
  UNPROCESSABLE: { status: 422, text: 'The request has values that are not allowed.' },
  WEAK_PASSWORD: { status: 422, text: 'The new password is not accepted.' },
  TOO_MANY_REQUESTS: { status: 429, text: 'Too many requests.' },
  HEADERS_TOO_LARGE: { status: 431, text: 'The request headers are too large.' },
  INTERNAL: { status: 500, text: 'An internal error occurred.' },
  NO_APPROVERS: { status: 500, text: 'The request has no approver.' },
  WORKFLOW_FAILED: { status: 500, text: 'The workflow could not be completed.' },
  NOT_SUPPORTED: { status: 501, text: 'This operation is not supported here.' },
  TARGET_FAILED: { status: 502, text: 'A downstream system refused the change.' },
  TARGET_UNREACHABLE: { status: 503, text: 'A downstream system did not answer.' },
  NOT_AVAILABLE: { status: 503, text: 'This application is not available.' },
  SHUTTING_DOWN: { status: 503, text: 'The service is shutting down.' },
  TOO_MANY_CONNECTIONS: { status: 503, text: 'Too many connections are open. Try again in a few seconds.' },
  TARGET_TIMEOUT: { status: 504, text: 'A downstream system took too long.' },
} as const satisfies Record<string, { status: number; text: string }>

export type ErrorCode = keyof typeof errorCodes

/**
 * A public text that names an attribute: as `shown`, or without it as the layer that throws names it. Other layers have
 * other names.
 */
export type AttributeText = (shown?: string) => string

export interface GatewayErrorOptions {
  readonly cause?: unknown | undefined
  /** Replaces the catalog's text. The client sees it, so it may contain only what the client sent or may know. */
  readonly publicText?: string | AttributeText | undefined
  /** The attribute whose value is refused, as the layer that throws names it. A text that names it is an AttributeText. */
  readonly attribute?: string | undefined
  /** Seconds after which a retry may succeed; sent as Retry-After. */
  readonly retryAfter?: number | undefined
  /** Extra response headers, such as WWW-Authenticate or Allow. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** A protocol's own keyword for the error, such as SCIM's scimType. */
  readonly keyword?: string | undefined
  /** What is wrong with the parts of the request. The client sees it. */
  readonly problems?: readonly FieldProblem[]
}

export interface FieldProblem {
  /** A JSON Pointer (RFC 6901) into the body; empty for the whole body. */
  readonly pointer: string
  readonly detail: string
}

/**
 * `message` is for the log and never sent; clients see `publicText` and `status`. All of them have names instead of
 * values of secrets.
 */
export class GatewayError extends Error {
  readonly code: ErrorCode
  readonly status: number
  readonly publicText: string
  /** The attribute whose value is refused, in the names of the layer that threw. */
  readonly attribute: string | undefined
  readonly #ownText: string | AttributeText | undefined
  readonly retryAfter: number | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly keyword: string | undefined
  readonly problems: readonly FieldProblem[]

  constructor(code: ErrorCode, detail: string, options: GatewayErrorOptions = {}) {
    super(withoutSecrets(detail), options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'GatewayError'
    this.code = code
    this.status = errorCodes[code].status
    this.attribute = options.attribute
    this.#ownText = options.publicText
    this.publicText = this.textNaming()
    this.retryAfter = options.retryAfter
    this.headers = options.headers ?? {}
    this.keyword = options.keyword
    this.problems = (options.problems ?? []).map(({ pointer, detail }) => ({ pointer, detail: withoutSecrets(detail) }))
  }

  /** What replaces the catalog's text, for an error that repeats this one; undefined if nothing does. */
  get ownText(): string | AttributeText | undefined {
    return this.#ownText
  }

  /** The public text, with the attribute shown as given. */
  textNaming(shown?: string): string {
    const text = this.#ownText
    if (text === undefined) return errorCodes[this.code].text
    return withoutSecrets(typeof text === 'string' ? text : text(shown))
  }

  /** The caller's request was refused, and the gateway works as it should. Decides the log level. */
  get isRefusal(): boolean {
    return this.status < 500 || this.code === 'NOT_SUPPORTED' || this.code === 'NOT_AVAILABLE'
  }
}

/** The public text of TARGET_UNREACHABLE for a system that answered with this status. */
export const unavailableText = (status: number): string =>
  status === 429 ? 'A downstream system has too many requests.' : 'A downstream system is not available.'

/** Turns anything thrown into a GatewayError. Anything else becomes INTERNAL, with the original as its cause. */
export function asGatewayError(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  return new GatewayError('INTERNAL', message, { cause: thrown })
}
