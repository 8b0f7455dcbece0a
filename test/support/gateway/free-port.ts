import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/** Below the ports of outgoing connections (32768 and up): one of these could take a free port before its server starts. */
const [lowest, above] = [12_000, 32_000]
const given = new Set<number>()

/** A free TCP port on loopback that this process has not used yet. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(lowest, above)
    if (given.has(port)) continue
    given.add(port)
    if (await isFree(port)) return port
    if (given.size > (above - lowest) / 2) throw new Error('this process has used too many ports')
  }
}

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
