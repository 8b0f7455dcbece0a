import { once } from 'node:events'
import { createServer, type Server } from 'node:net'

/**
 * An address that belongs to this process before it can serve anything, so that a port in use is found before anything is
 * written. Closes every connection until a listener takes the address.
 */
export class ReservedPort {
  readonly #server: Server
  #isTaken = false

  private constructor(server: Server) {
    this.#server = server
  }

  /** Rejects if the address is not free. */
  static async open({ host, port }: { readonly host: string; readonly port: number }): Promise<ReservedPort> {
    const server = createServer((socket) => socket.resetAndDestroy())
    server.listen({ host, port })
    await once(server, 'listening')
    return new ReservedPort(server)
  }

  /** For the `listen` of another server, which has the address from then on. */
  take(): Server {
    this.#isTaken = true
    return this.#server
  }

  /** Gives the address back, unless a listener has it. */
  async close(): Promise<void> {
    if (this.#isTaken) return
    this.#isTaken = true
    this.#server.close()
    await once(this.#server, 'close')
  }
}
