import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { testServerCertificate, testServerKey } from '#testing/gateway/test-certificates.ts'

export interface ReviewCall {
  readonly token: string
  readonly audiences: readonly string[] | undefined
  readonly authorization: string | undefined
}

export interface KnownToken {
  readonly username: string
  readonly uid?: string
  readonly groups?: readonly string[]
  readonly extra?: Readonly<Record<string, readonly string[]>>
  readonly audiences: readonly string[]
}

const ownAudience = 'https://kubernetes.default.svc'

/** The part of an API server that reviews tokens, on a real socket. `override` simulates a broken one. */
export class FakeKubernetesApi {
  readonly calls: ReviewCall[] = []
  readonly tokens = new Map<string, KnownToken>()
  /** The answers to GET, by path. */
  readonly documents = new Map<string, unknown>()
  override: ((request: IncomingMessage, response: ServerResponse) => void) | undefined
  /** Simulates a server that ignores audiences. */
  ignoresAudiences = false
  sockets = 0
  readonly #server: Server

  readonly #scheme: string

  private constructor(server: Server, scheme: string) {
    this.#server = server
    this.#scheme = scheme
    server.on('connection', () => {
      this.sockets++
    })
  }

  static async start(scheme: 'http' | 'https' = 'http'): Promise<FakeKubernetesApi> {
    const answer = (request: IncomingMessage, response: ServerResponse): void => {
      if (api.override === undefined) void api.#review(request, response)
      else api.override(request, response)
    }
    const tls = { key: testServerKey, cert: testServerCertificate }
    const server: Server = scheme === 'http' ? createServer(answer) : createTlsServer(tls, answer)
    const api = new FakeKubernetesApi(server, scheme)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return api
  }

  get url(): string {
    return `${this.#scheme}://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async #review(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const document = request.method === 'GET' ? this.documents.get(request.url ?? '') : undefined
    if (document !== undefined) {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(document))
      return
    }
    if (request.method !== 'POST' || request.url !== '/apis/authentication.k8s.io/v1/tokenreviews') {
      response.writeHead(404).end()
      return
    }
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const { spec } = JSON.parse(Buffer.concat(chunks).toString()) as { spec: { token: string; audiences?: string[] } }
    const { authorization } = request.headers
    this.calls.push({ token: spec.token, audiences: spec.audiences, authorization })
    const status = this.#status(spec.token, spec.audiences ?? [ownAudience])
    const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec, status }
    response.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify(review))
  }

  #status(token: string, asked: readonly string[]): unknown {
    const known = this.tokens.get(token)
    if (known === undefined) return { user: {}, error: '[invalid bearer token, token lookup failed]' }
    const { username, uid, groups, extra, audiences } = known
    const user = { username, uid, groups, extra }
    if (this.ignoresAudiences) return { authenticated: true, user }
    const confirmed = asked.filter((audience) => audiences.includes(audience))
    if (confirmed.length === 0) return { user: {}, error: 'token audiences are invalid for the target audiences' }
    return { authenticated: true, user, audiences: confirmed }
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}
