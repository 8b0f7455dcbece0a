import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { SeededRandom } from './seeded-random.ts'

/** A real change to a user. */
export interface Effect {
  readonly user: string
  /** The submission and its stage. */
  readonly ticket: string
  readonly stage: string
  readonly key: string
}

type Fault = 'none' | 'slow' | 'slowAfter' | 'tooMany' | 'fails' | 'failsAfter' | 'half' | 'cut'

const usual: Readonly<Record<Fault, number>> = {
  none: 75,
  slow: 5,
  slowAfter: 4,
  tooMany: 3,
  fails: 4,
  failsAfter: 4,
  half: 3,
  cut: 2,
}

/**
 * A badly behaved system for accounts: it is slow, answers 429 and 500, performs half of a request, and cuts
 * connections after the work is done. It runs outside of the gateways, and remembers every change. Like many real
 * systems it recognizes a repeated call by its idempotency key.
 */
export class HostileTarget {
  readonly effects: Effect[] = []
  /** Calls that got the result of an earlier call with the same key. */
  repeated = 0
  /** If true, it behaves well. */
  calm = false
  readonly #users = new Map<string, Record<string, string[]>>()
  readonly #doneKeys = new Set<string>()
  readonly #server: Server
  readonly #random: SeededRandom

  private constructor(random: SeededRandom) {
    this.#random = random
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch(() => response.destroy())
    })
  }

  static async start(random: SeededRandom): Promise<HostileTarget> {
    const target = new HostileTarget(random)
    await new Promise<void>((resolve) => target.#server.listen(0, '127.0.0.1', resolve))
    return target
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  attributesOf(user: string): Readonly<Record<string, readonly string[]>> | undefined {
    return this.#users.get(user)
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const user = decodeURIComponent((request.url ?? '').slice('/users/'.length))
    const body = await textOf(request)
    if (user.startsWith('poison')) return send(response, 422, { error: 'this user is not wanted' })
    const fault = this.calm ? 'none' : this.#random.weighted(usual)
    if (request.method === 'GET') {
      if (fault === 'slow') await delay(this.#random.between(50, 400))
      if (fault === 'fails') return send(response, 500, {})
      const attributes = this.#users.get(user)
      return attributes === undefined ? send(response, 404, {}) : send(response, 200, { attributes })
    }
    if (fault === 'slow') await delay(this.#random.between(100, 2000))
    if (fault === 'tooMany') return send(response, 429, {}, { 'retry-after': '1' })
    if (fault === 'fails') return send(response, 500, {})
    const wanted = JSON.parse(body) as Record<string, string[]>
    const key = String(request.headers['idempotency-key'])
    this.#apply(user, wanted, key, fault === 'half')
    if (fault === 'slowAfter') await delay(this.#random.between(100, 2000))
    if (fault === 'cut') return void response.destroy()
    if (fault === 'half' || fault === 'failsAfter') return send(response, 500, {})
    send(response, 200, {})
  }

  #apply(user: string, wanted: Record<string, string[]>, key: string, half: boolean): void {
    if (this.#doneKeys.has(key)) {
      this.repeated++
      return
    }
    const attributes = this.#users.get(user) ?? {}
    const names = Object.keys(wanted)
    const applied = half ? names.slice(0, Math.floor(names.length / 2)) : names
    const changed = applied.filter((name) => String(attributes[name]) !== String(wanted[name]))
    for (const name of changed) attributes[name] = wanted[name] ?? []
    this.#users.set(user, attributes)
    if (half) return
    this.#doneKeys.add(key)
    if (changed.length > 0) this.effects.push({ user, ticket: ticketOf(wanted), stage: stageOf(wanted), key })
  }
}

const ticketOf = (attributes: Readonly<Record<string, readonly string[]>>): string => attributes['ticket']?.[0] ?? ''

/** The furthest stage in the attributes. */
const stageOf = (attributes: Readonly<Record<string, readonly string[]>>): string =>
  ['denied', 'stage2', 'stage1'].find((name) => attributes[name] !== undefined) ?? ''

async function textOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  return text
}

function send(response: ServerResponse, status: number, body: object, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}
