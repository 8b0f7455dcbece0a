import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'

interface StoredObject {
  readonly metadata: { readonly name: string; readonly resourceVersion: string }
}

/** The part of an API server that stores objects of any kind, on a real socket. */
export async function startFakeObjectApi(): Promise<{ readonly url: string; close(): Promise<void> }> {
  const objects = new Map<string, StoredObject>()
  let version = 1
  const failure = (code: number, reason: string) => ({
    code,
    body: { kind: 'Status', status: 'Failure', reason, code },
  })
  const store = (path: string, code: number, content: StoredObject, before?: StoredObject) => {
    const created = { uid: randomUUID(), creationTimestamp: new Date().toISOString() }
    const metadata = { ...created, ...before?.metadata, ...content.metadata, resourceVersion: String(version++) }
    const stored = { ...content, metadata }
    objects.set(path, stored)
    return { code, body: stored }
  }
  async function answer(request: IncomingMessage) {
    const path = (request.url ?? '').replace(/\?.*/, '')
    const before = objects.get(path)
    if (request.method === 'POST') {
      const content = (await json(request)) as StoredObject
      const own = `${path}/${content.metadata.name}`
      return objects.has(own) ? failure(409, 'AlreadyExists') : store(own, 201, content)
    }
    if (request.method === 'GET' && /\/users$/.test(path)) {
      const items = [...objects].flatMap(([own, object]) => (own.startsWith(`${path}/`) ? object : []))
      return { code: 200, body: { kind: 'List', metadata: { resourceVersion: String(version) }, items } }
    }
    if (before === undefined) return failure(404, 'NotFound')
    if (request.method === 'GET') return { code: 200, body: before }
    if (request.method === 'DELETE') {
      objects.delete(path)
      return { code: 200, body: { kind: 'Status', status: 'Success' } }
    }
    const content = (await json(request)) as StoredObject
    const isStale = content.metadata.resourceVersion !== before.metadata.resourceVersion
    return isStale ? failure(409, 'Conflict') : store(path, 200, content, before)
  }
  const server = createServer(async (request, response) => {
    const { code, body } = await answer(request)
    response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
}
