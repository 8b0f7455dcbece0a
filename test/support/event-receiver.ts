import { createServer, type Server } from 'node:http'
import { decodeJwt, type JWTPayload } from 'jose'
import { freePort } from '#testing/free-port.ts'

export interface EventReceiver {
  readonly url: string
  /** Accepted tokens, in order of arrival. */
  readonly tokens: string[]
  /** The data of each attempt. */
  readonly attempts: { readonly status: number; readonly authorization: string | undefined; readonly type: string }[]
  /** The most concurrent requests. */
  readonly most: () => number
  claims(): JWTPayload[]
  listen(): Promise<void>
  close(): Promise<void>
}

/** A receiver of pushed events (RFC 8935). `answer` decides about the n-th attempt; it is accepted by default. */
export async function eventReceiver(
  answer: (attempt: number) => { status: number; headers?: Record<string, string>; body?: string } | undefined,
): Promise<EventReceiver> {
  const port = await freePort()
  const tokens: string[] = []
  const attempts: { status: number; authorization: string | undefined; type: string }[] = []
  let server: Server | undefined
  let underWay = 0
  let most = 0
  return {
    url: `http://127.0.0.1:${port}/events`,
    tokens,
    attempts,
    most: () => most,
    claims: () => tokens.map((token) => decodeJwt(token)),
    listen: () =>
      new Promise((resolve) => {
        server = createServer((request, response) => {
          most = Math.max(most, ++underWay)
          let token = ''
          request.on('data', (chunk) => {
            token += String(chunk)
          })
          request.on('end', () => {
            const { status, headers = {}, body = '' } = answer(attempts.length + 1) ?? { status: 202 }
            const { authorization, 'content-type': type = '' } = request.headers
            attempts.push({ status, authorization, type })
            if (status === 202) tokens.push(token)
            underWay--
            response.writeHead(status, headers).end(body)
          })
        }).listen(port, '127.0.0.1', resolve)
      }),
    close: async () => {
      server?.closeAllConnections()
      await new Promise((resolve) => (server === undefined ? resolve(undefined) : server.close(resolve)))
      server = undefined
    },
  }
}
