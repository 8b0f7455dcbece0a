import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { freshSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'

/** A proxy between the gateway and PostgreSQL, so that a test can take the database down and bring it back. */
async function breakable(url: string) {
  const real = new URL(url)
  const sockets = new Set<Socket>()
  let up = true
  const server = createServer((client) => {
    if (!up) {
      client.destroy()
      return
    }
    const database = connect(Number(real.port), real.hostname)
    for (const [from, to] of [
      [client, database],
      [database, client],
    ] as const) {
      sockets.add(from)
      from.on('error', () => {})
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
      from.pipe(to)
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const address = new URL(url)
  address.host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const set = (state: boolean): void => {
    up = state
    if (!up) for (const socket of sockets) socket.destroy()
  }
  return { url: address.toString(), set }
}

test.skipIf(postgresUrl() === '')(
  'the database goes down under load: 503 with Retry-After, and recovery without a restart',
  async () => {
    const database = await breakable(await freshSchema())
    const gateway = await startGatewayProcess({ config: 'examples/quickstart', args: ['--database', database.url] })
    onTestFinished(async () => void (await gateway.stop()))
    const token = await gateway.token('--subject', 'idp', '--claim', 'role=crm')
    const send = async (method: string, path: string, body?: unknown) => {
      const response = await fetch(gateway.url + path, {
        method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/scim+json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      const text = await response.text()
      return { status: response.status, hint: response.headers.get('retry-after'), body: text && JSON.parse(text) }
    }
    const created: string[] = []
    const seen = new Set<string>()
    let running = true
    const work = async (worker: number): Promise<void> => {
      for (let i = 0; running; i++) {
        const userName = `user-${worker}-${i}`
        const { status, hint, body } = await send('POST', '/scim/people/Users', { userName, displayName: userName })
        if (status === 201) created.push(userName)
        else seen.add(`${status} ${hint} ${body.schemas}`)
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
    }
    const workers = Array.from({ length: 4 }, (_, worker) => work(worker))
    await until(async () => created.length > 20, 10_000)

    database.set(false)
    await until(async () => seen.size > 0, 10_000)
    expect((await fetch(`${gateway.url}/ready`)).status).toBe(503)
    expect((await fetch(`${gateway.url}/check_alive`)).status).toBe(200)
    expect((await send('GET', '/scim/crm/Users/alan')).status).toBe(200)
    // Its target is up, but its changes could not be audited.
    expect(await send('POST', '/scim/crm/Users', { userName: 'mary' })).toMatchObject({ status: 503, hint: '5' })

    database.set(true)
    const before = created.length
    await until(async () => created.length > before + 20, 15_000)
    running = false
    await Promise.all(workers)
    expect([...seen]).toEqual(['503 5 urn:ietf:params:scim:api:messages:2.0:Error'])
    for (const userName of created) {
      const { body } = await send('GET', `/scim/people/Users?filter=${encodeURIComponent(`userName eq "${userName}"`)}`)
      expect(body.Resources).toMatchObject([{ userName, displayName: userName }])
    }
  },
)
