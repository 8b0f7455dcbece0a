import type { AddressInfo } from 'node:net'
import { connect, createServer, type Socket } from 'node:net'

export interface CountingRelay {
  readonly port: number
  /** The bytes that the server has answered so far. */
  readonly answered: number
  close(): void
}

/** A relay in front of a server on this machine. */
export async function startCountingRelay(to: number): Promise<CountingRelay> {
  let answered = 0
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const behind = connect(to, '127.0.0.1')
    for (const socket of [client, behind]) {
      sockets.add(socket)
      socket.on('error', () => socket.destroy())
      socket.on('close', () => sockets.delete(socket))
    }
    behind.on('data', (bytes) => {
      answered += bytes.length
    })
    client.pipe(behind)
    behind.pipe(client)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    get answered() {
      return answered
    },
    close: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
