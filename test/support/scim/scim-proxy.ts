import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'

export interface ProxiedCall {
  readonly method: string
  /** Below the service's address, without the query. */
  readonly path: string
}

/** A fault of a call: its answer is lost though it was performed, it never arrives, or another answer replaces it. */
export type Fault = 'lost' | 'never' | { readonly status: number; readonly headers?: Record<string, string> }

export interface ScimProxy {
  readonly url: URL
  readonly calls: ProxiedCall[]
  /** The length of all answers together. */
  answered: number
  /** Called for each call. */
  fault: (call: ProxiedCall) => Fault | undefined
  /** Changes the service's description of itself. */
  describe: (config: JsonObject) => JsonObject
  /** Changes a group in the service's answers. */
  showGroup: (group: JsonObject) => JsonObject
  /** Ignores every filter, like careless servers. */
  ignoresFilters: boolean
  close(): void
}

/** A proxy between a client and a real SCIM service. */
export async function startScimProxy(behind: string): Promise<ScimProxy> {
  const server = createServer((request, response) => {
    pass(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const proxy: ScimProxy = {
    url: new URL(`http://127.0.0.1:${port}`),
    calls: [],
    answered: 0,
    fault: () => undefined,
    describe: (config) => config,
    showGroup: (group) => group,
    ignoresFilters: false,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }

  async function pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '/', proxy.url)
    const call = { method: request.method ?? 'GET', path: pathname }
    proxy.calls.push(call)
    const body = await bodyOf(request)
    const fault = proxy.fault(call)
    if (fault === 'never') return void response.destroy()
    if (typeof fault === 'object') return void response.writeHead(fault.status, fault.headers).end('{}')
    if (proxy.ignoresFilters) searchParams.delete('filter')
    const query = searchParams.size === 0 ? '' : `?${searchParams}`
    const answer = await fetch(behind + pathname + query, {
      method: call.method,
      headers: passedOn(request),
      ...(body === '' ? {} : { body }),
    })
    const text = await answer.text()
    if (fault === 'lost') return void response.destroy()
    const shown = text === '' ? '' : JSON.stringify(shownAs(pathname, JSON.parse(text)))
    proxy.answered += shown.length
    const etag = answer.headers.get('etag')
    response.writeHead(answer.status, etag === null ? {} : { etag }).end(shown)
  }

  function shownAs(path: string, body: JsonObject): JsonObject {
    if (path === '/ServiceProviderConfig') return proxy.describe(body)
    if (!path.startsWith('/Groups')) return body
    const { Resources } = body
    if (!Array.isArray(Resources)) return proxy.showGroup(body)
    return { ...body, Resources: Resources.filter(isJsonObject).map(proxy.showGroup) }
  }
  return proxy
}

const passedOn = ({ headers }: IncomingMessage): Record<string, string> =>
  Object.fromEntries(
    ['authorization', 'content-type', 'accept', 'if-match'].flatMap((name) => {
      const value = headers[name]
      return typeof value === 'string' ? [[name, value]] : []
    }),
  )

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}
