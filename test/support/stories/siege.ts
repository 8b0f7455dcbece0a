import { connect, type Socket } from 'node:net'
import process from 'node:process'

/** The full form of a siege, set by `npm run siege`; the stories have shorter ones. */
export const siegeSeconds = Number(process.env['SIEGE_SECONDS'] ?? 0)
export const siegeRequests = Number(process.env['SIEGE_REQUESTS'] ?? 0)
/** How many people the story of delta aggregation has, and how many requests race for one group. */
export const siegePeople = Number(process.env['SIEGE_PEOPLE'] ?? 0)
export const siegeRaces = Number(process.env['SIEGE_RACES'] ?? 0)
/** The tier sends the same requests every time; the full form chooses others unless it gets a seed. */
export const siegeSeed = Number(process.env['SIEGE_SEED'] ?? 1)

export interface Besieger {
  /** Sent at once. */
  readonly begin: string
  /** Sent one byte per second, until it ends. */
  readonly drip: string
}

const comeBackMillis = 2000

/** Connections that never finish a request. They keep their side open, and reconnect after the server closed them. */
export class Siege {
  readonly #sockets = new Set<Socket>()
  readonly #timers = new Set<NodeJS.Timeout>()
  readonly #port: number
  #over = false
  /** The numbers of connections, and of those that the server ended. */
  connected = 0
  ended = 0

  constructor(port: number, besiegers: readonly Besieger[]) {
    this.#port = port
    for (const besieger of besiegers) this.#send(besieger)
  }

  /** No client reconnects from now on; connected ones stay. */
  end(): void {
    this.#over = true
    for (const timer of this.#timers) clearTimeout(timer)
  }

  close(): void {
    this.end()
    for (const socket of this.#sockets) socket.destroy()
  }

  #send(besieger: Besieger): void {
    const socket = connect({ port: this.#port, host: '127.0.0.1', allowHalfOpen: true })
    this.#sockets.add(socket)
    let isOpen = true
    const left = (): void => {
      if (!isOpen) return
      isOpen = false
      this.ended++
      // Its own side stays open: the server must not wait for it.
      if (!this.#over) this.#later(comeBackMillis, () => this.#send(besieger))
    }
    socket.on('connect', () => this.connected++)
    socket.on('error', left)
    socket.on('close', () => {
      this.#sockets.delete(socket)
      left()
    })
    socket.on('end', left)
    socket.resume()
    if (besieger.begin !== '') socket.write(besieger.begin)
    const drip = (i: number): void => {
      if (!isOpen || i >= besieger.drip.length) return
      socket.write(besieger.drip.charAt(i))
      this.#later(1000, () => drip(i + 1))
    }
    drip(0)
  }

  #later(ms: number, work: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      work()
    }, ms)
    this.#timers.add(timer)
  }
}
