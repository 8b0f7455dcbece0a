import type { ErrorFormat } from '#sdk/filter/error-format.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'

const headers = { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' }

export const jsonAnswer = (status: number, body: unknown): GatewayResponse => ({
  status,
  headers,
  body: JSON.stringify(body),
})

/** What people are to mend, all of it at once. The status is that of the API's description. */
export const refusal = (errors: readonly string[]): GatewayResponse => jsonAnswer(500, { errors })

/** `errors` as for a refusal; what is wrong with members of the body is told one by one. */
export const registerErrors: ErrorFormat = ({ publicText, problems, code }, requestId) => ({
  headers,
  body: JSON.stringify({
    errors:
      problems.length === 0
        ? [publicText]
        : problems.map(({ pointer, detail }) => `${pointer || 'The body'} ${detail}`),
    code,
    requestId,
  }),
})
