import { createServer as createHttpServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { testServerCertificate, testServerKey } from '#testing/gateway/test-certificates.ts'

export interface TokenRequest {
  readonly path: string
  readonly method: string
  readonly headers: IncomingMessage['headers']
  readonly form: URLSearchParams
  readonly at: number
}

export interface TokenAnswer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** It never answers. */
  readonly hangs?: true
}

export interface TokenEndpoint {
  readonly url: string
  readonly requests: readonly TokenRequest[]
  close(): Promise<void>
}

const maxBody = 65_536

export interface TokenEndpointOptions {
  readonly tls?: boolean
  readonly port?: number
  /** The status of a question about a key; 204 if absent. These are not among the requests. */
  readonly key?: (kid: string) => number
}

/** Simulates the token endpoint on loopback; the test decides the answers. */
export async function startTokenEndpoint(
  answer: (request: TokenRequest) => TokenAnswer,
  options: TokenEndpointOptions = {},
): Promise<TokenEndpoint> {
  const requests: TokenRequest[] = []
  const listener: RequestListener = (incoming, response) => {
    const [, kid] = /\/key\/([^/]+)$/.exec(incoming.url ?? '') ?? []
    if (incoming.method === 'GET' && kid !== undefined) {
      response.writeHead(options.key?.(kid) ?? 204).end()
      return
    }
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      if (Buffer.concat(chunks).length > maxBody) incoming.destroy()
    })
    incoming.on('end', () => {
      const request = {
        path: incoming.url ?? '',
        method: incoming.method ?? '',
        headers: incoming.headers,
        form: new URLSearchParams(Buffer.concat(chunks).toString()),
        at: Date.now(),
      }
      requests.push(request)
      const { status = 200, headers = {}, body = '', hangs } = answer(request)
      if (hangs === true) return
      response.writeHead(status, { ...headers })
      response.end(body)
    })
  }
  const server: Server = options.tls
    ? createHttpsServer({ key: testServerKey, cert: testServerCertificate }, listener)
    : createHttpServer(listener)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port ?? 0, '127.0.0.1', resolve)
  })
  const address = server.address()
  const port = address !== null && typeof address === 'object' ? address.port : 0
  return {
    url: `${options.tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** An unsigned text in the form of a token with these claims. */
export function tokenLike(claims: Readonly<Record<string, unknown>>, kid = 'k'): string {
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  return `${part({ alg: 'RS256', kid })}.${part(claims)}.${'s'.repeat(342)}`
}
