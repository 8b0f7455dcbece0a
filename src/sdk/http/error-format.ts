import type { GatewayError } from '#kernel/errors.ts'
import { jsonBody } from '#kernel/json.ts'
import type { GatewayRequest, GatewayResponse } from './http.ts'

/** How an API reports a failure. Status, Retry-After and the error's own headers are added by the pipeline. */
export type ErrorFormat = (
  error: GatewayError,
  requestId: string,
  request?: GatewayRequest,
) => Pick<GatewayResponse, 'headers' | 'body'>

/** The format of every API without its own. */
export const jsonErrors: ErrorFormat = ({ publicText, problems, code }, requestId) => ({
  headers: { 'content-type': 'application/json; charset=utf-8' },
  body: jsonBody({
    errors: [publicText, ...problems.map(({ pointer, detail }) => `${pointer || '/'} ${detail}`)],
    code,
    requestId,
  }),
})
