import type { AddressInfo } from 'node:net'
import { connect, createServer, type Server, type Socket } from 'node:net'

/** A connection to a server, of any protocol, that a test watches and cuts. */
export class Line {
  /** Called for each part that a client sends; false loses the part and cuts the line. */
  passes: (sent: Buffer) => boolean = () => true
  readonly #clients = new Set<Socket>()
  readonly #server: Server
  #isCut = false

  private constructor(port: number) {
    this.#server = createServer((client) => {
      if (this.#isCut) return void client.destroy()
      const server = connect(port, '127.0.0.1')
      this.#clients.add(client)
      client.on('data', (sent) => {
        if (this.#isCut) return
        if (this.passes(sent)) server.write(sent)
        else this.cut()
      })
      server.on('data', (answer) => void client.write(answer))
      // The server finishes what it has received, also if no one waits for the answer.
      client.on('close', () => {
        this.#clients.delete(client)
        server.end()
      })
      server.on('close', () => client.destroy())
      for (const socket of [client, server]) socket.on('error', () => {})
    })
  }

  static async to(port: number): Promise<Line> {
    const line = new Line(port)
    await new Promise<void>((resolve) => line.#server.listen(0, '127.0.0.1', resolve))
    return line
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** The address with the port of the line. */
  url(address: string): string {
    const url = new URL(address)
    url.port = String(this.port)
    return url.href
  }

  cut(): void {
    this.#isCut = true
    for (const client of this.#clients) client.destroy()
  }

  mend(): void {
    this.passes = () => true
    this.#isCut = false
  }

  close(): void {
    this.cut()
    this.#server.close()
  }
}
