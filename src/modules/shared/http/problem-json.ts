import { errorCodes, type FieldProblem } from '#kernel/errors.ts'
import type { ErrorFormat } from '#sdk/filter/error-format.ts'

/**
 * RFC 9457. `type` names the error's code, `instance` the request as the log knows it; what is wrong with parts of the
 * body stands in `errors`, each with a pointer to it, as in the RFC's own example.
 */
export const problemErrors: ErrorFormat = ({ code, status, publicText, problems }, requestId) => {
  const title = errorCodes[code].text
  return {
    headers: { 'content-type': 'application/problem+json' },
    body: JSON.stringify({
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
