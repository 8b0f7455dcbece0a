import type http from 'node:http'
import type { Awaitable } from '#kernel/awaitable.ts'
import { type ErrorCode, errorCodes } from '#kernel/errors.ts'
import type { Logger } from '#kernel/logger.ts'
import { shownReason } from '#kernel/secret-values.ts'

interface Page {
  readonly status?: number
  readonly headers: http.OutgoingHttpHeaders
  readonly body: string | Buffer
}

/** Pages of the process itself, which no configuration changes, by their paths. */
export type PlainPages = ReadonlyMap<string, WritePage>
type WritePage = (request: http.IncomingMessage) => Awaitable<Page>

const text = { 'content-type': 'text/plain; charset=utf-8' }

/**
 * Whether the process lives, and whether it can serve; `ready` rejects with the reason if it can't. Probes come every few
 * seconds, so a reason is logged once.
 */
export function healthPages({ ready, log }: { ready(): Promise<void>; readonly log: Logger }): PlainPages {
  let logged: string | undefined
  return new Map<string, WritePage>([
    ['/check_alive', () => ({ headers: text, body: 'alive\n' })],
    [
      '/ready',
      () =>
        ready().then(
          () => {
            if (logged !== undefined) log.info('ready again')
            logged = undefined
            return { headers: text, body: 'ready\n' }
          },
          (error: unknown) => {
            const reason = shownReason(error)
            if (reason !== logged) log.warn('not ready', { reason })
            logged = reason
            return { status: 503, headers: { ...text, 'retry-after': '1' }, body: 'not ready\n' }
          },
        ),
    ],
  ])
}

export const jsonPage = (status: number, body: object, headers: http.OutgoingHttpHeaders = {}): Page => ({
  status,
  headers: { 'content-type': 'application/json; charset=utf-8', ...headers },
  body: JSON.stringify(body),
})

const errorPage = (code: ErrorCode): Page => {
  const { status, text: error } = errorCodes[code]
  return jsonPage(status, { errors: [error], code })
}

/** Answers GET and HEAD without a body; nothing else is at these paths. Never rejects. */
export async function answerPage(
  pages: PlainPages,
  request: http.IncomingMessage,
  response: http.ServerResponse,
  log: Logger,
): Promise<void> {
  const { method, url = '', headers: given } = request
  const hasBody = given['transfer-encoding'] !== undefined || (given['content-length'] ?? '0') !== '0'
  if (hasBody) response.shouldKeepAlive = false
  const page = method === 'GET' || method === 'HEAD' ? pages.get(url.split('?', 1)[0] ?? '') : undefined
  let answer: Page
  try {
    answer = hasBody ? errorPage('BODY_TOO_LARGE') : await (page?.(request) ?? errorPage('NOT_FOUND'))
  } catch (err) {
    log.error('request failed', { err })
    answer = errorPage('INTERNAL')
  }
  const { status = 200, headers, body } = answer
  response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) }).end(body)
}
