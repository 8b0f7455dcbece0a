import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { QueryCount } from './query-count.ts'

/** A relay in front of the PostgreSQL at `url` that counts what passes. */
export async function startQueryRelay(url: string) {
  const counts: QueryCount[] = []
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const behind = connect(Number(new URL(url).port), '127.0.0.1')
    const queries = new QueryCount()
    counts.push(queries)
    for (const socket of [client, behind]) {
      socket.setNoDelay(true)
      sockets.add(socket)
      socket.on('error', () => socket.destroy())
      socket.on('close', () => sockets.delete(socket))
    }
    client.on('data', (bytes) => queries.add(bytes))
    client.pipe(behind)
    behind.pipe(client)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const sum = (name: 'statements' | 'commits'): number => counts.reduce((all, one) => all + one[name], 0)
  const own = new URL(url)
  own.port = String((server.address() as AddressInfo).port)
  return {
    url: own.href,
    counted: () => ({ statements: sum('statements'), commits: sum('commits') }),
    close: (): void => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
