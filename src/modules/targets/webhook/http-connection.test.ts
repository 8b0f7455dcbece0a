import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { HttpConnection, NotSent } from './http-connection.ts'

const server = createServer()
let connection: HttpConnection | undefined

afterEach(async () => {
  connection?.close()
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

test('a request that waited for a connection in use and broke may have been seen', async () => {
  const seen: string[] = []
  server.on('request', (request, response) => {
    seen.push(request.url ?? '')
    if (request.url === '/breaks') request.socket.destroy()
    else setTimeout(() => response.end('{}'), 20)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const url = new URL(`http://127.0.0.1:${port}`)
  connection = await HttpConnection.open({ url, authority: undefined, connections: 1, maxAnswerBytes: 1000 })
  const send = (path: string): Promise<unknown> =>
    connection?.send({ method: 'POST', path, headers: {}, body: '{}' }, AbortSignal.timeout(5000)) ?? Promise.reject()
  const [first, second] = await Promise.allSettled([send('/answers'), send('/breaks')])
  expect(first.status).toBe('fulfilled')
  expect(second.status === 'rejected' && second.reason).toBeInstanceOf(Error)
  expect(second.status === 'rejected' && second.reason).not.toBeInstanceOf(NotSent)
  expect(seen).toEqual(['/answers', '/breaks'])
})
