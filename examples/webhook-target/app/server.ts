import { createHmac, timingSafeEqual } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Page, type Person, Refusal, Store, type Team } from './store.ts'

/** A small CRM with people and teams behind a plain JSON API: what a gateway finds in the wild. */
const { values: options } = parseArgs({
  options: {
    port: { type: 'string', default: '9090' },
    data: { type: 'string', default: ':memory:' },
    /** Of scrypt: what a guess at a password costs. */
    'password-cost': { type: 'string', default: '16384' },
  },
})
const secret = (name: string): string =>
  process.env[`CRM_${name.toUpperCase().replace('-', '_')}`] ??
  readFileSync(join(import.meta.dirname, '../secrets/crm', name), 'utf8').trim()
const token = secret('token')
const signingSecret = secret('signing-secret')
const store = new Store(options.data, Number(options['password-cost']))

const maxBody = 4 * 1024 * 1024
const maxText = 64 * 1024
const maxAge = 300

type Answer = { readonly status: number; readonly body?: unknown }
type Json = Readonly<Record<string, unknown>>

interface Call {
  readonly query: URLSearchParams
  readonly body: Json
  readonly ifMatch: string | undefined
}

type Handler = (call: Call, ...ids: string[]) => Answer

const ok = (body: unknown): Answer => {
  if (body === undefined) throw new Refusal(404, 'there is none')
  return { status: 200, body }
}
const done = (work: () => void): Answer => {
  work()
  return { status: 204 }
}

const routes: readonly (readonly [method: string, path: RegExp, handler: Handler])[] = [
  ['GET', /^\/api\/users$/, ({ query }) => ok(store.people(byOf(query), pageOf(query)))],
  ['POST', /^\/api\/users$/, ({ body }) => ({ status: 201, body: store.addPerson(newPerson(body)) })],
  ['GET', /^\/api\/users\/([^/]+)$/, (_, id = '') => ok(store.person(id))],
  [
    'PATCH',
    /^\/api\/users\/([^/]+)$/,
    ({ body, ifMatch }, id = '') => ok(store.changePerson(id, personOf(body), ifMatch)),
  ],
  ['DELETE', /^\/api\/users\/([^/]+)$/, ({ ifMatch }, id = '') => done(() => store.remove('people', id, ifMatch))],
  [
    'PUT',
    /^\/api\/users\/([^/]+)\/password$/,
    ({ body }, id = '') => done(() => store.setPassword(id, required(body, 'password'))),
  ],
  ['GET', /^\/api\/teams$/, ({ query }) => ok(store.teams(query.get('name') ?? undefined, pageOf(query)))],
  ['POST', /^\/api\/teams$/, ({ body }) => ({ status: 201, body: store.addTeam(newTeam(body)) })],
  ['GET', /^\/api\/teams\/([^/]+)$/, (_, id = '') => ok(store.team(id))],
  ['PATCH', /^\/api\/teams\/([^/]+)$/, ({ body, ifMatch }, id = '') => ok(store.changeTeam(id, teamOf(body), ifMatch))],
  ['DELETE', /^\/api\/teams\/([^/]+)$/, ({ ifMatch }, id = '') => done(() => store.remove('teams', id, ifMatch))],
  ['GET', /^\/api\/teams\/([^/]+)\/members$/, ({ query }, id = '') => ok(store.members(id, pageOf(query)))],
  [
    'PUT',
    /^\/api\/teams\/([^/]+)\/members\/([^/]+)$/,
    (_, team = '', person = '') => done(() => store.join(team, person)),
  ],
  [
    'DELETE',
    /^\/api\/teams\/([^/]+)\/members\/([^/]+)$/,
    (_, team = '', person = '') => done(() => store.leave(team, person)),
  ],
]

createServer(async (request, response) => {
  const answer = await answerTo(request).catch((error: unknown): Answer => {
    if (error instanceof Refusal) return { status: error.status, body: { error: error.message } }
    console.error(error)
    return { status: 500, body: { error: 'something broke' } }
  })
  response.statusCode = answer.status
  if (answer.body === undefined) response.end()
  else response.setHeader('content-type', 'application/json').end(JSON.stringify(answer.body))
}).listen(Number(options.port), '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${options.port}/api`))

async function answerTo(request: IncomingMessage): Promise<Answer> {
  const text = await read(request)
  authenticate(request, text)
  const { method = '', url = '' } = request
  const { pathname, searchParams } = new URL(url, 'http://localhost')
  const call = { query: searchParams, body: parse(text), ifMatch: request.headers['if-match'] }
  for (const [verb, path, handler] of routes) {
    const match = verb === method ? path.exec(pathname) : null
    if (match === null) continue
    const ids = match.slice(1).map(decode)
    const key = method === 'POST' ? request.headers['idempotency-key'] : undefined
    return store.transaction(() => once(key, () => handler(call, ...ids)))
  }
  throw new Refusal(404, 'there is no such address')
}

/** A POST that comes again with the same key is answered as it was, and done once. */
function once(key: string | string[] | undefined, work: () => Answer): Answer {
  if (typeof key !== 'string') return work()
  const before = store.answerTo(key)
  if (before !== undefined) return { status: before.status, body: JSON.parse(before.body) as unknown }
  const answer = work()
  store.keepAnswer(key, answer.status, JSON.stringify(answer.body))
  return answer
}

/** Both the token and a signature that is fresh: over time, method, path with query, and body. */
function authenticate({ headers, method, url }: IncomingMessage, body: string): void {
  if (!same(headers.authorization ?? '', `Bearer ${token}`)) throw new Refusal(401, 'who are you?')
  const timestamp = String(headers['x-signature-timestamp'])
  const age = Math.abs(Date.now() / 1000 - Number(timestamp))
  const expected = createHmac('sha256', signingSecret).update(`${timestamp}\n${method}\n${url}\n${body}`).digest('hex')
  if (!(age <= maxAge) || !same(String(headers['x-signature']), `v1=${expected}`)) {
    throw new Refusal(401, 'the signature is missing, wrong or too old')
  }
}

function same(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)]
  return a.length === b.length && timingSafeEqual(a, b)
}

async function read(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > maxBody) throw new Refusal(413, 'too much')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function parse(text: string): Json {
  if (text === '') return {}
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Json
  } catch {
    // Told below, like everything else that is no object.
  }
  throw new Refusal(400, 'the body must be a JSON object')
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new Refusal(400, 'the path is not encoded properly')
  }
}

const byOf = (query: URLSearchParams) => ({
  login: query.get('login') ?? undefined,
  email: query.get('email') ?? undefined,
})

function pageOf(query: URLSearchParams): Page {
  const number = (name: string, fallback: number, max: number): number => {
    const text = query.get(name) ?? String(fallback)
    if (!/^\d{1,9}$/.test(text)) throw new Refusal(400, `${name} must be a number`)
    return Math.min(Number(text), max)
  }
  return { offset: number('offset', 0, 999_999_999), limit: number('limit', 50, 100) }
}

const newPerson = (body: Json): Person => ({
  name: null,
  phone: null,
  active: true,
  emails: [],
  ...personOf(body),
  login: required(body, 'login'),
})

/** Members that are absent stay as they are; null clears one. */
function personOf(body: Json): Partial<Person> {
  return {
    ...(body['login'] === undefined ? {} : { login: required(body, 'login') }),
    ...optional(body, 'name'),
    ...optional(body, 'phone'),
    ...(body['active'] === undefined ? {} : { active: activeOf(body['active']) }),
    ...(body['emails'] === undefined ? {} : { emails: textsOf(body['emails'], 'emails') }),
    ...Object.assign({}, ...profileTexts.map((name) => optional(body, name))),
    ...Object.fromEntries(
      profileLists.flatMap((name) => (body[name] === undefined ? [] : [[name, textsOf(body[name], name)]])),
    ),
  }
}

/** Null would clear it, and must not be taken for false. */
function activeOf(value: unknown): boolean {
  if (typeof value !== 'boolean') throw new Refusal(422, 'active must be true or false')
  return value
}

/** What else a person may have. */
const profileTexts = [
  ...['externalId', 'fullName', 'firstName', 'lastName', 'middleName', 'namePrefix', 'nameSuffix', 'nickname'],
  ...['profileUrl', 'title', 'userType', 'language', 'locale', 'timezone', 'homeEmail', 'otherEmail', 'mobile'],
  ...['homePhone', 'fax', 'officeAddress', 'street', 'city', 'region', 'postalCode', 'country', 'employeeNumber'],
  ...['costCenter', 'organization', 'division', 'department', 'manager'],
]
const profileLists = ['roles', 'entitlements']

const newTeam = (body: Json): Team => ({
  description: null,
  externalId: null,
  ...teamOf(body),
  name: required(body, 'name'),
})

function teamOf(body: Json): Partial<Team> {
  return {
    ...(body['name'] === undefined ? {} : { name: required(body, 'name') }),
    ...optional(body, 'description'),
    ...optional(body, 'externalId'),
  }
}

function required(body: Json, name: string): string {
  const value = textOf(body[name], name)
  if (value === '') throw new Refusal(422, `${name} is required`)
  return value
}

function optional<K extends string>(body: Json, name: K): { readonly [P in K]?: string | null } {
  const value = body[name]
  if (value === undefined) return {}
  return { [name]: value === null ? null : textOf(value, name) } as { readonly [P in K]: string | null }
}

function textsOf(value: unknown, name: string): string[] {
  if (!Array.isArray(value)) throw new Refusal(422, `${name} must be a list`)
  return value.map((item) => textOf(item, name))
}

function textOf(value: unknown, name: string): string {
  if (typeof value !== 'string') throw new Refusal(422, `${name} must be a text`)
  if (Buffer.byteLength(value) > maxText) throw new Refusal(422, `${name} is too long`)
  return value
}
