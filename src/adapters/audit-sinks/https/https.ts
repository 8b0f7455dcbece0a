import { hash } from 'node:crypto'
import { openHttpPool, readBytes } from '#protocols/http/http-client.ts'
import { readRetryAfter } from '#protocols/http/retry-after.ts'
import { defineAuditSink, readAuthority, type SinkRecord } from '#sdk/audit/audit-sink.ts'
import { choice, parsed, text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'

const loopbackHosts = new Set(['127.0.0.1', 'localhost', '[::1]'])
const headerName = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/

const parameters = {
  url: parsed('https address', parseUrl, {
    about: 'The address for batches: `https:`, or `http:` on a loopback host.',
    required: true,
  }),
  format: choice(['lines', 'array'], {
    about: '`lines` posts JSON Lines (`application/x-ndjson`), `array` one JSON array (`application/json`).',
    fallback: 'lines',
  }),
  token: text({ about: 'Sent as `Authorization: Bearer`.', secret: true }),
  headerName: parsed('header name', parseHeaderName, {
    about: 'Another header that authenticates, such as `X-Api-Key`; with `headerValue`.',
  }),
  headerValue: text({ about: 'The value of that header.', secret: true }),
  caFile: text({
    about:
      "A PEM file with the certificate authority of the receiver, relative to the configuration folder; the system's own when absent.",
  }),
}

/** Posts the audit in batches; the receiver acknowledges each by a 2xx answer. */
export default defineAuditSink({
  className: 'auditSinks.Https',
  parameters,
  parse: (params, issues, context) => {
    const { caFile, ...given } = readParameters(parameters, params, issues, context)
    if ((given.headerName === undefined) !== (given.headerValue === undefined)) {
      issues.error(params.pathOf('headerName'), '"headerName" and "headerValue" go together')
    }
    return { ...given, authority: readAuthority(caFile, params.pathOf('caFile'), issues, context) }
  },
  create: ({ url, format, token, headerName: name, headerValue: value, authority }) => {
    const authentication = {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(name === undefined || value === undefined ? {} : { [name]: value }),
    }
    const pool = openHttpPool(authority)
    const isArray = format === 'array'
    return {
      settleMillis: 0,
      async send(records, signal) {
        const lines = records.flatMap((record) => record.lines)
        const call = {
          method: 'POST',
          url: url ?? new URL('https://localhost'),
          headers: {
            'content-type': isArray ? 'application/json' : 'application/x-ndjson',
            'idempotency-key': idempotencyKey(records),
            ...authentication,
          },
          body: isArray ? `[${lines.join(',')}]` : `${lines.join('\n')}\n`,
        }
        try {
          const response = await pool.open(call, signal)
          // The status decides: a body that is too long or never ends would otherwise stop the audit for good.
          await readBytes(response, maxAnswerBytes).catch(() => {})
          const { statusCode: status = 0, headers } = response
          if (status >= 200 && status < 300) return { kind: 'accepted' }
          const retryAfterMillis = readRetryAfter(headers['retry-after'], new Date())
          return {
            kind: 'failed',
            reason: `the receiver answered ${status}`,
            retryAfterMillis,
          }
        } catch (error) {
          return { kind: 'failed', reason: error instanceof Error ? error.message : String(error) }
        }
      },
      close: () => pool.close(),
    }
  },
})

const maxAnswerBytes = 64 * 1024

/** The same records get the same key from every replica. */
const idempotencyKey = (records: readonly SinkRecord[]): string =>
  hash('sha256', records.map(({ link }) => `${link.chain} ${link.number} ${link.hash}`).join('\n'), 'base64url')

function parseUrl(written: string): URL {
  const url = URL.canParse(written) ? new URL(written) : undefined
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && loopbackHosts.has(url.hostname))
  if (url === undefined || !isSafe) throw new Error('must be an https address, or an http address on a loopback host')
  if (url.username !== '' || url.password !== '') throw new Error('must not contain a password: use "token"')
  return url
}

function parseHeaderName(written: string): string {
  if (!headerName.test(written)) throw new Error('must be the name of a header')
  return written
}
