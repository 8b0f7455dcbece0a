import { errorCodes, type FieldProblem, GatewayError } from '#kernel/errors.ts'
import { jsonBody } from '#kernel/json.ts'
import { type ErrorFormat, jsonErrors } from '#sdk/http/error-format.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'

/** Answers are about one user, so no cache may store them. */
export const jsonHeaders = { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' }

export const answer = (body: unknown, status = 200): GatewayResponse => ({
  status,
  headers: jsonHeaders,
  body: jsonBody(body),
})

export const emptyAnswer = (status: number): GatewayResponse => ({ status, headers: { 'cache-control': 'no-store' } })

export const badRequest = (publicText: string): GatewayError =>
  new GatewayError('BAD_REQUEST', publicText, { publicText })

export const notFound = (detail: string, publicText?: string): GatewayError =>
  new GatewayError('NOT_FOUND', detail, publicText === undefined ? {} : { publicText })

/** `jsonErrors` that no cache may store. */
export const privateErrors: ErrorFormat = (error, requestId) => ({
  ...jsonErrors(error, requestId),
  headers: jsonHeaders,
})

/**
 * RFC 9457. `type` names the error's code, `instance` the request as the log knows it. `errors` lists the problems of
 * the body, each with a pointer, as in the RFC's own example.
 */
export const problemErrors: ErrorFormat = ({ code, status, publicText, problems }, requestId) => {
  const title = errorCodes[code].text
  return {
    headers: { 'content-type': 'application/problem+json' },
    body: jsonBody({
      type: `urn:gatehouse:error:${code.toLowerCase().replaceAll('_', '-')}`,
      title,
      status,
      ...(publicText === title ? {} : { detail: publicText }),
      instance: `urn:uuid:${requestId}`,
      ...(problems.length === 0 ? {} : { errors: problems.map(toError) }),
    }),
  }
}

const toError = ({ pointer, detail }: FieldProblem) => ({ pointer: `#${encodeURI(pointer)}`, detail })
