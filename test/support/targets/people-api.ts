import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

interface PersonDocument {
  readonly login: string
  readonly name?: string
  readonly phone?: string
  readonly mails: readonly { readonly kind: string; readonly address: string }[]
  readonly units?: readonly string[]
}

/** Handles a request before the API sees it; returns true if it is done. */
export type Interference = (request: IncomingMessage, response: ServerResponse, body: string) => boolean

/**
 * An API that differs from the one of examples/webhook-target: users are identified by their login, which is in the
 * path; PUT replaces a whole user, units included; pages are by cursor or number. A test may interfere.
 */
export class PeopleApi {
  readonly people = new Map<string, PersonDocument>()
  readonly units = new Map<string, Set<string>>()
  readonly calls: {
    readonly method: string
    readonly url: string
    readonly headers: IncomingMessage['headers']
    readonly body: string
  }[] = []
  /** Before the API does anything. */
  before: Interference = () => false
  /** After it did, in place of its answer. */
  after: Interference = () => false
  readonly #server = createServer((request, response) => void this.#serve(request, response))

  static async start(): Promise<PeopleApi> {
    const api = new PeopleApi()
    await new Promise<void>((resolve) => api.#server.listen(0, '127.0.0.1', resolve))
    for (const name of ['group1', 'group2', 'group3']) api.units.set(name, new Set())
    return api
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const body = Buffer.concat(chunks).toString('utf8')
    const { method = '', url = '', headers } = request
    this.calls.push({ method, url, headers, body })
    if (this.before(request, response, body)) return
    const [status, answer] = this.#answer(method, url, body)
    if (this.after(request, response, body)) return
    response.statusCode = status
    if (answer === undefined) response.end()
    else response.setHeader('content-type', 'application/json').end(JSON.stringify(answer))
  }

  #answer(method: string, url: string, body: string): readonly [number, unknown?] {
    const [path = '', search = ''] = url.split('?')
    const [, , collection, key, link, other] = path.split('/').map(decodeURIComponent)
    const query = new URLSearchParams(search)
    if (collection === 'people' && key === undefined) return this.#peopleAnswer(method, query, body)
    if (collection === 'people' && key !== undefined) return this.#personAnswer(method, key, link, body)
    if (collection === 'units' && key === undefined) {
      const size = Number(query.get('size'))
      return [
        200,
        [...this.units.keys()]
          .slice(Number(query.get('page')) * size)
          .slice(0, size)
          .map((name) => this.#unit(name)),
      ]
    }
    const members = this.units.get(key ?? '')
    if (collection !== 'units' || key === undefined || members === undefined) return [404]
    if (link === undefined) return [200, this.#unit(key)]
    const login = other ?? (JSON.parse(body) as { who: string }).who
    if (!this.people.has(login)) return [404]
    if (method === 'POST') members.add(login)
    else if (!members.delete(login)) return [404]
    return [204]
  }

  #peopleAnswer(method: string, query: URLSearchParams, body: string): readonly [number, unknown?] {
    if (method === 'POST') {
      const person = JSON.parse(body) as PersonDocument
      if (this.people.has(person.login)) return [409]
      this.#keep(person)
      return [201]
    }
    const from = Number(query.get('after') ?? '0')
    const size = Number(query.get('size'))
    const page = [...this.people.values()].slice(from, from + size)
    const more = from + size < this.people.size ? String(from + size) : null
    return [200, { people: page.map((person) => this.#person(person)), more, total: this.people.size }]
  }

  #personAnswer(method: string, login: string, link: string | undefined, body: string): readonly [number, unknown?] {
    const person = this.people.get(login)
    if (person === undefined) return [404]
    if (link === 'units') return [200, this.#unitsOf(login).map((name) => ({ name }))]
    if (method === 'GET') return [200, this.#person(person)]
    if (method === 'DELETE') {
      this.people.delete(login)
      for (const members of this.units.values()) members.delete(login)
    } else {
      this.#keep({ ...(JSON.parse(body) as PersonDocument), login })
    }
    return [204]
  }

  #keep(person: PersonDocument): void {
    this.people.set(person.login, person)
    if (person.units === undefined) return
    for (const [name, members] of this.units) {
      if (person.units.includes(name)) members.add(person.login)
      else members.delete(person.login)
    }
  }

  #unitsOf(login: string): string[] {
    return [...this.units].flatMap(([name, members]) => (members.has(login) ? [name] : []))
  }

  #person(person: PersonDocument) {
    return { ...person, units: this.#unitsOf(person.login) }
  }

  #unit(name: string) {
    return { name, who: [...(this.units.get(name) ?? [])] }
  }
}
