import { createServer } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { afterEach, expect, onTestFinished, test } from 'vitest'
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

test.each([
  ['switches protocols', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n'],
  ['sends hints only', 'HTTP/1.1 103 Early Hints\r\n\r\n'],
  ['never ends a body without a length', 'HTTP/1.0 200 OK\r\n\r\n{"part":1}'],
])('a call ends with an error where the server %s', async (_what, answer) => {
  const hostile = createTcpServer((socket) => {
    socket.on('error', () => {}).once('data', () => socket.write(answer))
    onTestFinished(() => void socket.destroy())
  })
  onTestFinished(() => void hostile.close())
  await new Promise<void>((resolve) => hostile.listen(0, '127.0.0.1', resolve))
  const { port } = hostile.address() as AddressInfo
  pool = openHttpPool()
  const call = { method: 'POST', url: new URL(`http://127.0.0.1:${port}`), headers: {}, body: '{}' }
  const error: unknown = await pool
    .send(call, { signal: AbortSignal.timeout(300), bytes: 1000 })
    .catch((thrown) => thrown)
  expect(error).toBeInstanceOf(Error)
  expect(wasNotSent(error)).toBe(false)
})
