import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { TransitClient, TransitRefusal } from '#protocols/transit/transit-client.ts'

let server: Server | undefined

async function clientOf(listener: RequestListener, timeoutMillis = 5000): Promise<TransitClient> {
  const listening = createServer(listener)
  server = listening
  await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve))
  const { port } = listening.address() as AddressInfo
  const place = {
    address: `http://127.0.0.1:${port}`,
    namespace: 'team',
    login: { type: 'token', token: 't' } as const,
  }
  return new TransitClient(place, { clock: systemClock, timeoutMillis })
}

afterEach(() => {
  server?.closeAllConnections()
  server?.close()
})

describe('the responses of Transit', () => {
  test.each([400, 403, 404, 405])('%i is a refusal with its errors', async (status) => {
    const client = await clientOf((_, answer) => answer.writeHead(status).end('{"errors":["no such key"]}'))
    const refusal = await client.call('read', 'GET', 'transit/keys/x').catch((error: unknown) => error)
    expect(refusal).toBeInstanceOf(TransitRefusal)
    expect(refusal).toMatchObject({ status, message: `status ${status}: no such key` })
  })

  test.each([412, 429, 472, 473, 500, 502, 503])(
    '%i counts as unavailable, with the time of the next try',
    async (status) => {
      const client = await clientOf((_, answer) => answer.writeHead(status).end('{"errors":["Vault is sealed"]}'))
      await expect(client.call('read', 'GET', 'transit/keys/x')).rejects.toMatchObject({
        code: 'TARGET_UNREACHABLE',
        retryAfter: 2,
        cause: expect.objectContaining({ message: `status ${status}: Vault is sealed` }),
      })
    },
  )

  test.each(['<html>', '[1]', `{"data":"${'x'.repeat(1_100_000)}"}`])(
    'an unreadable one counts as unavailable',
    async (text) => {
      const client = await clientOf((_, answer) => answer.end(text))
      await expect(client.call('read', 'GET', 'transit/keys/x')).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
    },
  )

  test('contain the data, and the request has token and namespace', async () => {
    let seen: unknown
    const client = await clientOf((request, answer) => {
      const { 'x-vault-token': token, 'x-vault-namespace': namespace } = request.headers
      seen = [request.method, request.url, token, namespace]
      answer.end('{"data":{"a":1}}')
    })
    expect(await client.call('read', 'GET', 'transit/keys/x')).toEqual({ a: 1 })
    expect(seen).toEqual(['GET', '/v1/transit/keys/x', 't', 'team'])
  })
})

test('after two failures calls are not sent, and after a pause one of them tries', async () => {
  let asked = 0
  let works = false
  const client = await clientOf((_, answer) => {
    asked++
    answer.writeHead(works ? 200 : 500).end('{"data":{}}')
  })
  const call = () =>
    client.call('sign', 'POST', 'transit/sign/x', {}).then(
      () => 'done',
      () => 'away',
    )
  for (let i = 0; i < 10; i++) expect(await call()).toBe('away')
  expect(asked).toBe(2)
  works = true
  await expect.poll(call, { timeout: 15_000 }).toBe('done')
  expect(asked).toBe(3)
  expect(await Promise.all([call(), call(), call()])).toEqual(['done', 'done', 'done'])
})

test('a connection that was closed while idle is opened again', async () => {
  const sockets = new Set<import('node:net').Socket>()
  const client = await clientOf((_, answer) => answer.end('{"data":{}}'))
  server?.on('connection', (socket) => sockets.add(socket))
  const call = () => client.call('sign', 'POST', 'transit/sign/x', {})
  await call()
  // Reset, not closed: the client only notices when it sends.
  for (const socket of sockets) socket.resetAndDestroy()
  await expect(call()).resolves.toEqual({})
})
