import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, type JWTPayload, SignJWT } from 'jose'

export interface TestKey {
  readonly kid: string
  readonly alg: string
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
}

export function rsaKey(kid: string): TestKey {
  return { kid, alg: 'RS256', ...generateKeyPairSync('rsa', { modulusLength: 2048 }) }
}

export function ecKey(kid: string): TestKey {
  return { kid, alg: 'ES256', ...generateKeyPairSync('ec', { namedCurve: 'P-256' }) }
}

/** A token signed by that key; `header` replaces parts of its header. */
export function signedToken(
  key: TestKey,
  claims: JWTPayload,
  header: { kid?: string; alg?: string } = {},
): Promise<string> {
  return new SignJWT(claims).setProtectedHeader({ alg: key.alg, kid: key.kid, ...header }).sign(key.privateKey)
}

export type Respond = (request: IncomingMessage, response: ServerResponse) => void

/** An issuer on a real socket. Answers can be replaced by path, to simulate a broken or hostile one. */
export class FakeIssuer {
  readonly calls: string[] = []
  readonly overrides = new Map<string, Respond>()
  keys: readonly TestKey[] = []
  readonly #server: Server

  private constructor(server: Server) {
    this.#server = server
  }

  static async start(keys: readonly TestKey[]): Promise<FakeIssuer> {
    const server = createServer((request, response) => void issuer.#answer(request, response))
    const issuer = new FakeIssuer(server)
    issuer.keys = keys
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return issuer
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/issuer`
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? ''
    this.calls.push(path)
    const override = this.overrides.get(path)
    if (override !== undefined) {
      override(request, response)
    } else if (path === '/issuer/.well-known/openid-configuration') {
      sendJson(response, { issuer: this.url, jwks_uri: `${this.url}/certs` })
    } else if (path === '/issuer/certs') {
      sendJson(response, { keys: await Promise.all(this.keys.map(publicJwk)) })
    } else {
      response.writeHead(404).end()
    }
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

export function sendJson(response: ServerResponse, document: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(document))
}

async function publicJwk(key: TestKey) {
  return { ...(await exportJWK(key.publicKey)), kid: key.kid, alg: key.alg, use: 'sig' }
}
