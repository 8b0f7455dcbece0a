import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { rawRequest } from '#testing/gateway/raw-request.ts'

export const coreUser = 'urn:ietf:params:scim:schemas:core:2.0:User'
export const coreGroup = 'urn:ietf:params:scim:schemas:core:2.0:Group'
export const enterpriseUser = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'
export const patchOp = 'urn:ietf:params:scim:api:messages:2.0:PatchOp'

export interface Operation {
  readonly op: string
  readonly path?: string
  readonly value?: unknown
}

/** A provider's view of a gateway: its address and a token. */
export class ScimClient {
  readonly base: string
  readonly token: string

  constructor(base: string, token: string) {
    this.base = base
    this.token = token
  }

  get = (path: string, headers: Record<string, string> = {}) => this.call('GET', path, undefined, headers)
  post = (path: string, body: unknown) => this.call('POST', path, body)
  put = (path: string, body: unknown, headers: Record<string, string> = {}) => this.call('PUT', path, body, headers)
  delete = (path: string, headers: Record<string, string> = {}) => this.call('DELETE', path, undefined, headers)

  patch(path: string, Operations: readonly Operation[], headers: Record<string, string> = {}) {
    return this.call('PATCH', path, { schemas: [patchOp], Operations }, headers)
  }

  /** A query of a collection; every value is encoded. */
  list(collection: string, query: Readonly<Record<string, string>> = {}) {
    return this.get(`${collection}?${new URLSearchParams(query)}`)
  }

  filter = (collection: string, filter: string) => this.list(collection, { filter })

  /** The values of a group's members, in order. */
  async members(groupId: string): Promise<string[]> {
    const { body } = await this.get(`/Groups/${groupId}`)
    return ((body.members ?? []) as { value: string }[]).map(({ value }) => value).sort()
  }

  /** The status of a GET without a User-Agent, which `fetch` always sends. */
  statusWithoutUserAgent = async (path: string): Promise<number> => {
    const { hostname, port, pathname } = new URL(this.base)
    const answer = await rawRequest(
      Number(port),
      `GET ${pathname}${path} HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${this.token}\r\nconnection: close\r\n\r\n`,
    )
    return Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1])
  }

  async call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
    const response = await fetch(this.base + path, {
      method,
      headers: {
        authorization: `Bearer ${this.token}`,
        accept: 'application/scim+json',
        ...(body === undefined ? {} : { 'content-type': 'application/scim+json; charset=utf-8' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) }
  }
}

export interface ScimServer {
  readonly process: GatewayProcess
  readonly token: string
  /** The gateway on this path, as the client that may call it. */
  client(path: string): ScimClient
}

/** A process with the gateways of examples/scim or a similar folder, on the embedded or the given database. */
export async function startScimServer(
  databaseUrl?: string,
  dataFolder?: string,
  config = 'examples/scim',
): Promise<ScimServer> {
  const process = await startGatewayProcess({
    config,
    args: databaseUrl === undefined ? [] : ['--database', databaseUrl],
    ...(dataFolder === undefined ? {} : { dataFolder }),
  })
  const token = await process.token('--subject', 'idp')
  return { process, token, client: (path) => new ScimClient(process.url + path, token) }
}
