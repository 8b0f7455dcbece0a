import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'

/** What an application does with a SCIM request; written from its documentation, apart from the profiles of the target. */
interface Habits {
  /** `/ServiceProviderConfig`; without it there are no documents. */
  readonly config?: JsonObject
  readonly users: CollectionHabits & {
    /** Names that a PATCH or PUT can change; all if absent. */
    readonly changeable?: readonly string[]
    readonly login?: RegExp
    /** What DELETE does: `hides` deactivates the user and answers 404 from then on. */
    readonly deleting: 'deletes' | 'deactivates' | 'hides'
    /** Emails need `type` and `primary`. */
    readonly typedEmails?: boolean
    /** What the application answers of a user. */
    show?(user: JsonObject): JsonObject
    /** The id of a new user. */
    idOf?(user: JsonObject): string
  }
  readonly groups?: CollectionHabits & { readonly renames: boolean }
  /** `members[value eq "x"]` is understood. */
  readonly valuePaths: boolean
  /** A PATCH is answered without a body. */
  readonly answersNothing?: boolean
  /** Operations of PATCH, in lower case. */
  readonly operations: readonly string[]
}

interface CollectionHabits {
  /** Top-level names; all others are refused. */
  readonly known?: readonly string[]
  readonly required: readonly string[]
  /** `eq` with one of them is the only filter. */
  readonly filters: readonly string[]
}

const supported = { supported: true }
const unsupported = { supported: false }
const declared: JsonObject = {
  schemas: ['urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig'],
  patch: supported,
  bulk: { ...unsupported, maxOperations: 0, maxPayloadSize: 0 },
  filter: { ...supported, maxResults: 100 },
  changePassword: unsupported,
  sort: unsupported,
  etag: unsupported,
}
const allOperations = ['add', 'replace', 'remove']

const applications = {
  slack: {
    config: declared,
    users: {
      required: ['userName', 'emails'],
      filters: ['userName'],
      login: /^[a-z0-9._-]{1,21}$/,
      deleting: 'deactivates',
    },
    groups: { required: ['displayName'], filters: ['displayName'], renames: true },
    valuePaths: true,
    operations: allOperations,
  },
  github: {
    users: {
      known: ['active', 'displayName', 'emails', 'externalId', 'name', 'roles', 'userName'],
      required: ['userName', 'externalId', 'displayName', 'emails', 'active'],
      filters: ['userName', 'externalId', 'id', 'displayName'],
      deleting: 'deletes',
      typedEmails: true,
    },
    groups: {
      known: ['displayName', 'externalId', 'members'],
      required: ['displayName', 'externalId'],
      filters: ['externalId', 'id', 'displayName'],
      renames: true,
    },
    valuePaths: false,
    operations: allOperations,
  },
  gitlab: {
    users: {
      known: ['active', 'emails', 'externalId', 'name', 'userName', 'meta'],
      required: ['externalId', 'userName', 'emails', 'name'],
      changeable: ['active', 'externalId', 'id'],
      filters: ['id', 'externalId', 'userName'],
      deleting: 'deletes',
      typedEmails: true,
      idOf: (user) => String(user['externalId']),
      show: ({ externalId: _, name, ...user }) => ({
        active: true,
        ...user,
        'name.formatted': isJsonObject(name) ? (name['formatted'] ?? null) : null,
      }),
    },
    valuePaths: false,
    answersNothing: true,
    operations: ['add', 'replace'],
  },
  atlassian: {
    config: declared,
    users: {
      required: ['userName', 'emails'],
      filters: ['userName', 'externalId'],
      deleting: 'hides',
      typedEmails: true,
    },
    groups: { required: ['displayName'], filters: ['displayName'], renames: false },
    valuePaths: true,
    operations: allOperations,
  },
} as const satisfies Readonly<Record<string, Habits>>

export type ApplicationName = keyof typeof applications

interface Received {
  readonly method: string
  readonly path: string
  readonly status: number
  /** By `performance.now()`. */
  readonly at: number
  readonly body: JsonObject
}

/** In place of the application's own answer. */
export type Trouble = 'silence' | { readonly status: number; readonly headers?: Record<string, string> }

class Refusal extends Error {
  readonly status: number
  readonly scimType: string | undefined
  constructor(status: number, detail: string, scimType?: string) {
    super(detail)
    this.status = status
    this.scimType = scimType
  }
}

type Collection = Map<string, JsonObject>

interface Asked {
  readonly method: string
  readonly path: string
}

/** A server that behaves as the documentation of an application says, in memory. */
export class ScimApplication {
  readonly token: string
  readonly received: Received[] = []
  /** Called for each request. */
  trouble: (request: Asked) => Trouble | undefined = () => undefined
  /** The request is done, and its answer never arrives. */
  losesAnswer: (request: Asked) => boolean = () => false
  readonly #habits: Habits
  readonly #users: Collection = new Map()
  readonly #groups: Collection = new Map()
  readonly #hidden = new Set<string>()
  readonly #server = createServer((request, response) => {
    this.#serve(request, response).catch(() => response.destroy())
  })

  constructor(name: ApplicationName) {
    this.#habits = applications[name]
    this.token = `token-of-${name}`
  }

  async listen(port = 0): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(port, '127.0.0.1', resolve))
    return this
  }

  get url(): URL {
    return new URL(`http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/scim`)
  }

  /** All users as stored, by login. */
  users(): Map<string, JsonObject> {
    return new Map([...this.#users.values()].map((user) => [String(user['userName']), user]))
  }

  /** The logins of the members of each group, by its name. */
  groups(): Map<string, readonly string[]> {
    const loginOf = ({ value }: JsonObject): string => String(this.#users.get(String(value))?.['userName'] ?? value)
    return new Map(
      [...this.#groups.values()].map((group) => [
        String(group['displayName']),
        elementsOf(group['members']).map(loginOf).sort(),
      ]),
    )
  }

  /** Adds a group as an administrator of the application would. */
  addGroup(displayName: string): void {
    this.#create(this.#groups, { displayName, externalId: displayName })
  }

  empty(): void {
    for (const held of [this.#users, this.#groups, this.#hidden, this.received]) {
      if (Array.isArray(held)) held.length = 0
      else held.clear()
    }
    this.trouble = () => undefined
    this.losesAnswer = () => false
  }

  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://application.invalid')
    const method = request.method ?? 'GET'
    const path = decodeURIComponent(pathname.replace(/^\/scim/, ''))
    const body = await bodyOf(request)
    const note = (status: number): void => {
      this.received.push({ method, path, status, at: performance.now(), body })
    }
    const trouble = this.trouble({ method, path })
    if (trouble !== undefined) {
      note(trouble === 'silence' ? 0 : trouble.status)
      if (trouble === 'silence') response.destroy()
      else response.writeHead(trouble.status, trouble.headers).end('{}')
      return
    }
    try {
      if (request.headers['user-agent'] === undefined) throw new Refusal(403, 'Requests need a User-Agent')
      if (request.headers.authorization !== `Bearer ${this.token}`) throw new Refusal(401, 'Unknown token')
      const [status, shown] = this.#answer(method, path, searchParams, body)
      note(status)
      if (this.losesAnswer({ method, path })) return void response.destroy()
      response.writeHead(status, { 'content-type': 'application/scim+json' })
      response.end(shown === undefined ? undefined : JSON.stringify(shown))
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      const { status, message, scimType } = error
      note(status)
      response.writeHead(status).end(JSON.stringify({ status: String(status), detail: message, scimType }))
    }
  }

  #answer(method: string, path: string, query: URLSearchParams, body: JsonObject): [number, JsonObject?] {
    const { config, groups } = this.#habits
    if (path === '/ServiceProviderConfig' && config !== undefined) return [200, config]
    const [, kind = '', id] = path.split('/')
    const collection =
      kind === 'Users' ? this.#users : kind === 'Groups' && groups !== undefined ? this.#groups : undefined
    if (collection === undefined) throw new Refusal(404, 'No such endpoint')
    const excluded = query.get('excludedAttributes') ?? ''
    if (id === undefined) {
      if (method === 'GET') return [200, this.#list(collection, query)]
      if (method === 'POST') return [201, this.#shown(collection, this.#create(collection, body))]
      throw new Refusal(405, 'No such method')
    }
    const found = this.#hidden.has(id) ? undefined : collection.get(id)
    if (found === undefined) throw new Refusal(404, 'No such resource')
    if (method === 'GET') return [200, this.#shown(collection, found, excluded)]
    if (method === 'PATCH') {
      const changed = this.#patch(collection, found, body)
      return this.#habits.answersNothing === true ? [204] : [200, this.#shown(collection, changed)]
    }
    if (method !== 'DELETE') throw new Refusal(405, 'No such method')
    this.#remove(collection, id, found)
    return [204]
  }

  #list(collection: Collection, query: URLSearchParams): JsonObject {
    const matches = filterOf(query.get('filter'), this.#habitsOf(collection).filters)
    const found = [...collection.values()].filter((one) => !this.#hidden.has(String(one['id'])) && matches(one))
    const start = Math.max(1, Number(query.get('startIndex') ?? 1))
    // No application answers more at once.
    const page = found.slice(start - 1, start - 1 + Math.min(100, Number(query.get('count') ?? 100)))
    const excluded = query.get('excludedAttributes') ?? ''
    const Resources = page.map((one) => this.#shown(collection, one, excluded))
    return { totalResults: found.length, startIndex: start, itemsPerPage: page.length, Resources }
  }

  #create(collection: Collection, { schemas: _, ...body }: JsonObject): JsonObject {
    this.#check(collection, body)
    for (const name of this.#habitsOf(collection).required) {
      if (body[name] === undefined) throw new Refusal(400, `${name} is required`)
    }
    this.#requireUnique(collection, body)
    const id = collection === this.#users ? (this.#habits.users.idOf?.(body) ?? randomUUID()) : randomUUID()
    if (collection.has(id)) throw new Refusal(409, 'The id is taken', 'uniqueness')
    const made = { ...body, id }
    collection.set(id, made)
    return made
  }

  #patch(collection: Collection, found: JsonObject, { Operations }: JsonObject): JsonObject {
    const changed: Changed = { ...found }
    for (const operation of elementsOf(Operations)) {
      const op = String(operation['op']).toLowerCase()
      if (!this.#habits.operations.includes(op)) throw new Refusal(400, `The operation ${op} is not supported`)
      applyOperation(changed, op, operation, this.#habits.valuePaths)
    }
    const result: JsonObject = JSON.parse(JSON.stringify(changed))
    const names = Object.keys({ ...found, ...result }).filter((name) => !isSame(result[name], found[name]))
    const { changeable } = this.#habits.users
    const fixed = collection === this.#users ? names.find((name) => changeable?.includes(name) === false) : undefined
    if (fixed !== undefined) throw new Refusal(400, `${fixed} can't be changed`)
    if (collection === this.#groups && names.includes('displayName') && this.#habits.groups?.renames === false) {
      throw new Refusal(400, 'Groups cannot be renamed')
    }
    const { id: _, ...rest } = result
    this.#check(collection, rest)
    this.#requireUnique(collection, result)
    collection.set(String(found['id']), result)
    return result
  }

  #remove(collection: Collection, id: string, found: JsonObject): void {
    const { deleting } = this.#habits.users
    if (collection === this.#users && deleting !== 'deletes') {
      this.#users.set(id, { ...found, active: false })
      if (deleting === 'hides') this.#hidden.add(id)
      return
    }
    collection.delete(id)
    for (const [key, group] of this.#groups) {
      this.#groups.set(key, { ...group, members: elementsOf(group['members']).filter(({ value }) => value !== id) })
    }
  }

  #shown(collection: Collection, resource: JsonObject, excluded = ''): JsonObject {
    if (collection === this.#groups) {
      const { members, ...rest } = resource
      return excluded.includes('members') ? rest : { ...rest, members: members ?? [] }
    }
    const { groups, users } = this.#habits
    if (users.show !== undefined) return users.show(resource)
    if (groups === undefined) return { active: true, ...resource }
    const inGroups = [...this.#groups.values()]
      .filter((group) => elementsOf(group['members']).some(({ value }) => value === resource['id']))
      .map((group) => ({ value: group['id'] ?? '', display: group['displayName'] ?? '' }))
    return { active: true, ...resource, groups: inGroups }
  }

  #check(collection: Collection, body: JsonObject): void {
    const { known } = this.#habitsOf(collection)
    const unknown = known && Object.keys(body).find((name) => !known.includes(name))
    if (unknown !== undefined) throw new Refusal(400, `Unknown attribute ${unknown}`, 'invalidValue')
    if (collection === this.#groups) {
      const stranger = elementsOf(body['members']).find(({ value }) => !this.#users.has(String(value)))
      if (stranger !== undefined) throw new Refusal(400, 'A member does not exist')
      return
    }
    const { login, typedEmails } = this.#habits.users
    if (login?.test(String(body['userName'])) === false) throw new Refusal(400, 'invalid_username')
    const bad = elementsOf(body['emails']).some(({ type, primary }) => type === undefined || primary === undefined)
    if (typedEmails && bad) throw new Refusal(400, 'Emails need type and primary')
  }

  #requireUnique(collection: Collection, resource: JsonObject): void {
    const name = collection === this.#users ? 'userName' : 'displayName'
    const key = (one: JsonObject): string => String(one[name]).toLowerCase()
    const taken = [...collection.values()].some((one) => one['id'] !== resource['id'] && key(one) === key(resource))
    if (taken) throw new Refusal(409, `${name} is taken`, 'uniqueness')
  }

  #habitsOf(collection: Collection): CollectionHabits {
    return collection === this.#users ? this.#habits.users : (this.#habits.groups ?? this.#habits.users)
  }
}

type Changed = Record<string, JsonValue | undefined>

function applyOperation(resource: Changed, op: string, operation: JsonObject, valuePaths: boolean): void {
  const path = String(operation['path'] ?? '')
  const value = operation['value']
  const [, list = '', member] = /^(\w+)\[value eq "(.*)"\]$/.exec(path) ?? []
  if (member !== undefined) {
    if (!valuePaths) throw new Refusal(400, 'Paths with filters are not supported')
    resource[list] = elementsOf(resource[list]).filter((one) => one['value'] !== JSON.parse(`"${member}"`))
    return
  }
  const [whole = '', part] = path.split('.')
  const before = resource[whole]
  if (part !== undefined) {
    const { [part]: _, ...others } = isJsonObject(before) ? before : {}
    resource[whole] = op === 'remove' || value === undefined ? others : { ...others, [part]: value }
  } else if (op === 'remove') {
    const gone = new Set(elementsOf(value).map((one) => one['value']))
    resource[whole] = value === undefined ? undefined : elementsOf(before).filter((one) => !gone.has(one['value']))
  } else if (op === 'add' && Array.isArray(value)) {
    const known = new Set(elementsOf(before).map((one) => one['value']))
    resource[whole] = [...elementsOf(before), ...elementsOf(value).filter((one) => !known.has(one['value']))]
  } else resource[whole] = value
}

const elementsOf = (value: JsonValue | undefined): JsonObject[] =>
  Array.isArray(value) ? value.filter(isJsonObject) : []

const isSame = (one: JsonValue | undefined, other: JsonValue | undefined): boolean =>
  JSON.stringify(one) === JSON.stringify(other)

function filterOf(text: string | null, names: readonly string[]): (resource: JsonObject) => boolean {
  if (text === null) return () => true
  const [, name = '', value = ''] = /^(\w+) eq (".*")$/s.exec(text) ?? []
  if (!names.includes(name)) throw new Refusal(400, `The filter ${text} is not supported`, 'invalidFilter')
  const wanted = String(JSON.parse(value))
  const isExact = name === 'id' || name === 'externalId'
  return (resource) => {
    const stored = String(resource[name])
    return isExact ? stored === wanted : stored.toLowerCase() === wanted.toLowerCase()
  }
}

async function bodyOf(request: IncomingMessage): Promise<JsonObject> {
  const chunks: Buffer[] = []
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  const text = Buffer.concat(chunks).toString('utf8')
  const body: JsonValue = text === '' ? {} : JSON.parse(text)
  return isJsonObject(body) ? body : {}
}
