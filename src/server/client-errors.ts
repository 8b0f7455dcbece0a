import type { Socket } from 'node:net'
import { type ErrorCode, errorCodes } from '#kernel/errors.ts'
import { STATUS_CODES } from '#kernel/node-http.ts'

const parserErrors: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: 'HEADERS_TOO_LARGE',
  ERR_HTTP_REQUEST_TIMEOUT: 'REQUEST_TIMEOUT',
}

/** Answers what is not HTTP, or never finished being it: there is no request yet, only a socket. */
export function answerClientError(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return
  if (!socket.writable) {
    socket.destroy()
    return
  }
  const code = parserErrors[error.code ?? ''] ?? 'BAD_REQUEST'
  const { status, text } = errorCodes[code]
  const body = JSON.stringify({ errors: [text], code })
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}
