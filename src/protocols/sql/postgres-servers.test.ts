import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { PostgresDatabase } from '#protocols/sql/postgres-database.ts'

/** A listener that sends this to each connection. */
async function answering(bytes: readonly number[]): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.write(Buffer.from(bytes))
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

const head = (code: string, length: number): number[] => [code.charCodeAt(0), 0, 0, 0, length]

test.each([
  ['a login by Kerberos', [...head('R', 8), 0, 0, 0, 7]],
  ['a kind of login that nobody knows', [...head('R', 8), 0, 0, 0, 99]],
])('a server that asks for %s fails the query, not the process', async (_, bytes) => {
  const [one, other] = [await answering(bytes), await answering(bytes)]
  for (const hosts of [one, `${one},${other}`]) {
    const url = `postgres://user:planted@${hosts}/name`
    const database = new PostgresDatabase({
      url,
      user: undefined,
      password: undefined,
      timeoutMillis: 20_000,
      maxConnections: 1,
      onIdleLoss: () => {},
    })
    const failure = await database.query({ sql: 'select 1', params: [] }).catch((error: unknown) => error)
    await database.close()
    expect(failure).toMatchObject({ code: 'TARGET_UNREACHABLE' })
    const text = String(failure)
    expect(text).toMatch(/cannot be read: Unknown authenticationOk message type/)
    expect(text).not.toContain('planted')
  }
})
