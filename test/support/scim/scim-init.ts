import { once } from 'node:events'
import { type IncomingMessage, request as plainRequest } from 'node:http'
import { Agent, request } from 'node:https'
import type { ScimClientName } from '#cli/init/scim.ts'
import { commandOutput } from '#testing/gateway/command.ts'
import { testServerCertificate } from '#testing/gateway/test-certificates.ts'
import { ScimClient } from '#testing/scim/scim-client.ts'

/** No machine has this name, so it is not a loopback name either. */
export const publicHost = 'idm.example.test'

/** Runs `gatehouse scim init`, and reads the address, without its query, and the token from its output. */
export async function runScimInit(client: ScimClientName, out: string): Promise<{ address: string; token: string }> {
  const args = ['scim', 'init', '--client', client, '--url', `https://${publicHost}`, '--out', out]
  const stdout = await commandOutput(...args)
  const [address = ''] = new RegExp(`https://${publicHost}/\\S+`).exec(stdout) ?? []
  const [token = ''] = /\b[0-9a-f]{64}\b/.exec(stdout) ?? []
  return { address: address.replace(/\?.*/, ''), token }
}

/**
 * A client that calls a gateway by its public name, which is only in the Host header. It calls a listener without TLS
 * like the proxy that ends TLS.
 */
export class PublicScimClient extends ScimClient {
  /** The certificate is trusted, though it is for 127.0.0.1 and not for the public name. */
  readonly #agent = new Agent({ keepAlive: true, ca: testServerCertificate, checkServerIdentity: () => undefined })
  readonly #listener: () => string

  constructor(base: string, token: string, listener: () => string) {
    super(base, token)
    this.#listener = listener
  }

  override async call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
    const { host, pathname, search } = new URL(this.base + path)
    const isPlain = this.#listener().startsWith('http:')
    const sent = (isPlain ? plainRequest : request)(this.#listener() + pathname + search, {
      method,
      ...(isPlain ? {} : { agent: this.#agent }),
      headers: {
        host,
        authorization: `Bearer ${this.token}`,
        accept: 'application/scim+json',
        ...(isPlain ? { 'x-forwarded-proto': 'https', 'x-forwarded-for': '192.0.2.7' } : {}),
        ...(body === undefined ? {} : { 'content-type': 'application/scim+json; charset=utf-8' }),
        ...headers,
      },
    })
    sent.end(body === undefined ? undefined : JSON.stringify(body))
    const [response]: IncomingMessage[] = await once(sent, 'response')
    if (response === undefined) throw new Error('no response')
    let text = ''
    for await (const chunk of response.setEncoding('utf8')) text += chunk
    const given = new Headers()
    for (const [name, value = ''] of Object.entries(response.headers)) given.set(name, [value].flat().join(', '))
    return { status: response.statusCode ?? 0, headers: given, body: text === '' ? undefined : JSON.parse(text) }
  }

  /** Node.js sends none. */
  override statusWithoutUserAgent = async (path: string): Promise<number> => (await this.get(path)).status

  close(): void {
    this.#agent.destroy()
  }
}
