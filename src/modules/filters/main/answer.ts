import { GatewayError } from '#kernel/errors.ts'
import type { ErrorFormat } from '#sdk/filter/error-format.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'

/** What is about one person is kept by nobody on the way. */
const headers = { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' }

export const answer = (body: unknown, status = 200): GatewayResponse => ({
  status,
  headers,
  body: JSON.stringify(body),
})

export const emptyAnswer = (status: number): GatewayResponse => ({
  status,
  headers: { 'cache-control': headers['cache-control'] },
})

/** The predecessor's form of a failure; what is wrong with parts of the body stands behind the failure itself. */
export const mainErrors: ErrorFormat = ({ publicText, problems, code }, requestId) => ({
  headers,
  body: JSON.stringify({
    errors: [publicText, ...problems.map(({ pointer, detail }) => `${pointer || '/'} ${detail}`)],
    code,
    requestId,
  }),
})

export const badRequest = (publicText: string): GatewayError =>
  new GatewayError('BAD_REQUEST', publicText, { publicText })

export const notFound = (what: string, publicText?: string): GatewayError =>
  new GatewayError('NOT_FOUND', what, publicText === undefined ? {} : { publicText })
