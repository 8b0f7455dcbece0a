import type { AccountErrors } from '#contract/account.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { ErrorFormat } from '#sdk/filter/error-format.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'

const headers = { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' }

export const answer = (body: object, status = 200): GatewayResponse => ({ status, headers, body: JSON.stringify(body) })

export const noContent: GatewayResponse = { status: 204, headers: { 'cache-control': 'no-store' } }

const stepUp = 'step-up'

export const accountErrors: ErrorFormat = ({ publicText, problems, code, keyword }, requestId) => ({
  headers,
  body: JSON.stringify({
    errors: [publicText, ...problems.map(({ pointer, detail }) => `${pointer || '/'} ${detail}`)],
    code,
    requestId,
    ...(keyword === stepUp ? { stepUp: true } : {}),
  } satisfies AccountErrors),
})

export const notFound = (what: string): GatewayError => new GatewayError('NOT_FOUND', what)

export const refused = (publicText: string): GatewayError => new GatewayError('BAD_REQUEST', publicText, { publicText })

export const stepUpNeeded = (detail: string, cause?: unknown): GatewayError =>
  new GatewayError('ACCESS_DENIED', detail, {
    publicText: 'Sign in again before you change this.',
    keyword: stepUp,
    ...(cause === undefined ? {} : { cause }),
  })
