import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { type HttpPool, openHttpPool, wasNotSent } from '#protocols/http/http-client.ts'

const server = createServer()
let pool: HttpPool | undefined

afterEach(async () => {
  pool?.close()
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

test('a call that waited for a connection in use and then failed counts as sent', async () => {
  const seen: string[] = []
  server.on('request', (request, response) => {
    seen.push(request.url ?? '')
    if (request.url === '/breaks') request.socket.destroy()
    else setTimeout(() => response.end('{}'), 20)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const url = new URL(`http://127.0.0.1:${port}`)
  const kept = openHttpPool(undefined, { maxSockets: 1, maxFreeSockets: 1 })
  pool = kept
  const send = (path: string): Promise<unknown> =>
    kept.send(
      { method: 'POST', url, path, headers: {}, body: '{}' },
      { signal: AbortSignal.timeout(5000), bytes: 1000 },
    )
  const [first, second] = await Promise.allSettled([send('/answers'), send('/breaks')])
  expect(first.status).toBe('fulfilled')
  expect(second.status === 'rejected' && second.reason).toBeInstanceOf(Error)
  expect(second.status === 'rejected' && wasNotSent(second.reason)).toBe(false)
  expect(seen).toEqual(['/answers', '/breaks'])
})
