import { expect } from 'vitest'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { hostileSeed, sampled } from '#testing/hostile/sample.ts'
import type { Answer, Send } from '#testing/scim/scim-gateway-fixture.ts'

/** An attribute, or a part of one, as a filter names it. */
interface Leaf {
  readonly path: string
  readonly type: 'text' | 'exact' | 'boolean' | 'number' | 'time'
  /** The name inside the brackets of a list. */
  readonly inner?: string
}

const enterprise = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'
export const badgeUrn = 'urn:example:params:scim:schemas:Badge'

/** The extension that `badge` and `doors` belong to. */
export const badgeSchema = JSON.stringify({
  id: badgeUrn,
  attributes: [
    { name: 'badge', type: 'integer' },
    { name: 'since', type: 'dateTime' },
    { name: 'doors', multiValued: true },
  ],
})

const listParts = ['value', 'type', 'display', 'primary'] as const

const listLeaves = (list: string): Leaf[] => [
  { path: list, type: 'text' },
  ...listParts.map((part) => ({
    path: `${list}.${part}`,
    type: part === 'primary' ? ('boolean' as const) : ('text' as const),
    inner: part,
  })),
]

/** By the name of the attribute. */
const leavesOf: Readonly<Record<string, readonly Leaf[]>> = {
  userName: [{ path: 'userName', type: 'text' }],
  id: [{ path: 'id', type: 'exact' }],
  externalId: [{ path: 'externalId', type: 'exact' }],
  title: [{ path: 'title', type: 'text' }],
  displayName: [{ path: 'displayName', type: 'text' }],
  nickName: [{ path: 'nickName', type: 'text' }],
  active: [{ path: 'active', type: 'boolean' }],
  name: [
    { path: 'name.givenName', type: 'text' },
    { path: 'name.familyName', type: 'text' },
  ],
  emails: listLeaves('emails'),
  phoneNumbers: listLeaves('phoneNumbers'),
  department: [{ path: `${enterprise}:department`, type: 'text' }],
  badge: [
    { path: `${badgeUrn}:badge`, type: 'number' },
    { path: `${badgeUrn}:since`, type: 'time' },
  ],
  doors: [{ path: `${badgeUrn}:doors`, type: 'text' }],
  times: [
    { path: 'meta.created', type: 'time' },
    { path: 'meta.lastModified', type: 'time' },
  ],
}

const lists = ['emails', 'phoneNumbers']

type Condition =
  | { readonly kind: 'and' | 'or'; readonly of: readonly Condition[] }
  | { readonly kind: 'not'; readonly of: Condition }
  | { readonly kind: 'pr'; readonly leaf: Leaf }
  | { readonly kind: 'compare'; readonly leaf: Leaf; readonly operator: string; readonly value: JsonValue }
  | { readonly kind: 'element'; readonly list: string; readonly of: Condition }

/** Texts that fold, sort, escape or match in unusual ways. */
const pieces = [
  ...[
    'a',
    'B',
    'k',
    'K',
    '\u212a',
    'i',
    'I',
    '\u0130',
    'i\u0307',
    'ß',
    'ẞ',
    'Σ',
    'σ',
    'ς',
    'é',
    'É',
    'e\u0301',
    'Ä',
    'ä',
  ],
  ...[
    'ﬁ',
    '😀',
    '\u{10ffff}',
    '\ue000',
    '日本',
    '\u1c90',
    '\u10d0',
    'ǅ',
    'Ꙁ',
    '\u00a0',
    '\u200b',
    ' ',
    '  ',
    '\t',
    '\n',
  ],
  ...[
    '"',
    "'",
    '\\',
    '%',
    '_',
    '*',
    '(',
    ')',
    '{',
    '}',
    '[',
    ']',
    ',',
    ';',
    ':',
    '/',
    '+',
    '$1',
    '#',
    '&',
    '<',
    '=',
    '|',
    '!',
  ],
  ...['{"value":"a"}', '","type":"work', '"type":"work"', 'null', 'true', '0', '007', '1e9', '-5', '10', '9'],
  ...['\\u00e9', '%25', '*)(uid=*', "' or 1=1 --", 'work', 'WORK', 'home', '@example.com', 'x@example.com', ' or '],
]

export interface TrialOptions {
  readonly send: Send
  readonly endpoint: '/Users' | '/Groups'
  /** Names of `leavesOf` that the gateway announces. */
  readonly attributes: readonly string[]
  /** Values that the target stores as they are, if not all. */
  readonly storable?: (text: string) => boolean
}

/**
 * Creates random users or groups, then compares the answers to random filters and orders with those of an evaluator that shares no
 * code with the gateway.
 */
export class FilterTrial {
  readonly #options: TrialOptions
  readonly #leaves: readonly Leaf[]
  readonly #pool: readonly string[]
  readonly #next: (below: number) => number
  #users: readonly JsonObject[] = []

  constructor(options: TrialOptions) {
    this.#options = options
    this.#next = random(hostileSeed)
    const own = options.endpoint === '/Users' ? 'userName' : 'displayName'
    this.#leaves = [own, 'id', ...options.attributes].flatMap((name) => leavesOf[name] ?? [])
    const { storable = () => true } = options
    const texts = Array.from({ length: 60 }, () => this.#text()).filter((text) => text.isWellFormed() && storable(text))
    const long = texts.slice(0, 2).map((text) => `${'long '.repeat(30)}${text}`)
    this.#pool = ['work', 'home', 'Ann', 'ann', ...texts, ...long.filter(storable)]
  }

  async create(count = sampled(24, 100)): Promise<void> {
    const { send, endpoint } = this.#options
    const made = [...resourcesOf(await send('GET', endpoint))]
    const wanted = made.length + count
    for (let n = 0, refused = 0; made.length < wanted; n++) {
      const { status, body } = await send('POST', endpoint, endpoint === '/Users' ? this.#user(n) : this.#group(n))
      if (status === 201) {
        const { id } = body
        made.push((await send('GET', `${endpoint}/${encodeURIComponent(String(id))}`)).body)
      } else if (status >= 500 || ++refused > 4 * count) {
        expect([status, body]).toEqual([201, {}])
      }
    }
    this.#users = made
  }

  /** The filters that were answered otherwise, each with the users that are missing, and those that are too many. */
  async filters(count = sampled(150, 1500)): Promise<readonly unknown[]> {
    const wrong: unknown[] = []
    for (let i = 0; i < count; i++) {
      const condition = this.#condition(3)
      const filter = print(condition)
      const wanted = this.#users.filter((user) => matches(condition, user))
      const answer = await this.#find({ filter, count: '200' })
      const found = resourcesOf(answer)
      const missing = wanted.filter(({ id }) => !found.some((user) => user['id'] === id))
      const extra = found.filter(({ id }) => !wanted.some((user) => user['id'] === id))
      const isTotal = answer.body['totalResults'] === wanted.length
      if (answer.status === 200 && missing.length + extra.length === 0 && isTotal) continue
      wrong.push({ filter, status: answer.status, detail: answer.body['detail'], missing, extra })
    }
    return wrong
  }

  /** The orders that were answered otherwise: users in another order, missing ones, or other pages. */
  async orders(count = sampled(40, 300)): Promise<readonly unknown[]> {
    const wrong: unknown[] = []
    for (let i = 0; i < count; i++) {
      const leaf = this.#pick(this.#leaves.filter(({ path }) => !path.endsWith('doors')))
      const descending = this.#next(2) === 0
      const condition = this.#next(3) === 0 ? this.#condition(1) : undefined
      const wanted = condition === undefined ? this.#users : this.#users.filter((user) => matches(condition, user))
      const query = {
        sortBy: leaf.path,
        sortOrder: descending ? 'descending' : 'ascending',
        ...(condition === undefined ? {} : { filter: print(condition) }),
      }
      const answer = await this.#find({ ...query, count: '200' })
      const found = resourcesOf(answer)
      const keys = found.map((user) => keyOf(leaf, user))
      const sign = descending ? -1 : 1
      const unordered = found.filter((_, n) => n > 0 && sign * compareKeys(keys[n - 1], keys[n]) > 0)
      const ids = found.map(({ id }) => id)
      const isComplete = new Set(ids).size === wanted.length && wanted.every(({ id }) => ids.includes(id))
      const pages = i % 4 === 0 ? await this.#pages(query) : [ids, ids]
      const isPaged = pages.every((page) => JSON.stringify(page) === JSON.stringify(ids))
      if (answer.status === 200 && unordered.length === 0 && isComplete && isPaged) continue
      wrong.push({ query, status: answer.status, detail: answer.body['detail'], unordered, isComplete, isPaged, keys })
    }
    return wrong
  }

  /** The ids by index and by cursor, in small pages. */
  async #pages(query: Readonly<Record<string, string>>): Promise<readonly unknown[][]> {
    const byIndex: unknown[] = []
    for (;;) {
      const page = resourcesOf(await this.#find({ ...query, startIndex: String(byIndex.length + 1), count: '7' }))
      if (page.length === 0) break
      byIndex.push(...page.map(({ id }) => id))
    }
    const byCursor: unknown[] = []
    for (let cursor: JsonValue | undefined = ''; typeof cursor === 'string'; ) {
      const answer: Answer = await this.#find({ ...query, cursor, count: '7' })
      byCursor.push(...resourcesOf(answer).map(({ id }) => id))
      cursor = answer.body['nextCursor']
    }
    return [byIndex, byCursor]
  }

  #find(query: Readonly<Record<string, string>>): Promise<Answer> {
    const schemas = ['urn:ietf:params:scim:api:messages:2.0:SearchRequest']
    const { count, startIndex, ...texts } = query
    const numbers = { count: Number(count), ...(startIndex === undefined ? {} : { startIndex: Number(startIndex) }) }
    const { send, endpoint } = this.#options
    return send('POST', `${endpoint}/.search`, { schemas, ...texts, ...numbers })
  }

  #pick<T>(from: readonly T[]): T {
    return from[this.#next(from.length)] as T
  }

  #text(): string {
    return Array.from({ length: 1 + this.#next(4) }, () => this.#pick(pieces)).join('')
  }

  #user(n: number): JsonObject {
    const { attributes } = this.#options
    const has = (name: string): boolean => attributes.includes(name) && this.#next(4) > 0
    const text = (): string => this.#pick(this.#pool)
    const user: Record<string, JsonValue> = { userName: `${this.#pick(['u', 'U', 'ä', 'Ä', '😀', 'ﬁ', 'k'])}${n}` }
    // A client that creates a user with the externalId of an inactive one gets that one back.
    if (has('externalId')) user['externalId'] = `${text()}${n}`
    for (const name of ['title', 'displayName', 'nickName']) if (has(name)) user[name] = text()
    if (has('active')) user['active'] = this.#next(2) === 0
    if (has('name')) user['name'] = { givenName: text(), ...(this.#next(2) === 0 ? { familyName: text() } : {}) }
    for (const list of lists) if (has(list)) user[list] = this.#elements()
    if (has('department')) user[enterprise] = { department: text() }
    const badge = {
      ...(has('badge') ? { badge: this.#pick([0, 5, -5, 9, 10, 1_000_000]) } : {}),
      ...(has('badge') ? { since: this.#pick(['2026-01-01T00:00:00Z', '2025-06-01T12:00:00+02:00']) } : {}),
      ...(has('doors') ? { doors: [...new Set([text(), text()])] } : {}),
    }
    if (Object.keys(badge).length > 0) user[badgeUrn] = badge
    return user
  }

  #group(n: number): JsonObject {
    const externalId = this.#options.attributes.includes('externalId') && this.#next(2) === 0
    return {
      displayName: `${this.#pick(this.#pool)}${n}`,
      ...(externalId ? { externalId: this.#pick(this.#pool) } : {}),
    }
  }

  #elements(): JsonObject[] {
    const count = 1 + this.#next(3)
    const primary = this.#next(count + 1)
    return Array.from({ length: count }, (_, n) => ({
      value: this.#pick(this.#pool),
      ...(this.#next(3) > 0 ? { type: this.#pick(['work', 'home', 'WORK', this.#pick(this.#pool)]) } : {}),
      ...(this.#next(4) === 0 ? { display: this.#pick(this.#pool) } : {}),
      ...(n === primary ? { primary: true } : this.#next(4) === 0 ? { primary: false } : {}),
    }))
  }

  #condition(depth: number): Condition {
    const kind = depth === 0 ? 9 : this.#next(10)
    if (kind < 3) {
      const of = Array.from({ length: 2 + this.#next(2) }, () => this.#condition(depth - 1))
      return { kind: kind === 0 ? 'or' : 'and', of }
    }
    if (kind === 3) return { kind: 'not', of: this.#condition(depth - 1) }
    const known = lists.filter((list) => this.#options.attributes.includes(list))
    if (kind < 6 && known.length > 0) return this.#element(this.#pick(known))
    return this.#compare(this.#pick(this.#leaves))
  }

  #element(list: string): Condition {
    const parts = listLeaves(list)
      .slice(1)
      .map((leaf): Leaf => ({ ...leaf, path: leaf.inner ?? '' }))
    const of = Array.from({ length: 1 + this.#next(2) }, () => {
      const one = this.#compare(this.#pick(parts), list)
      return this.#next(6) === 0 ? ({ kind: 'not', of: one } as const) : one
    })
    const [first] = of
    const joined: Condition = of.length === 1 && first !== undefined ? first : { kind: this.#pick(['and', 'or']), of }
    return { kind: 'element', list, of: joined }
  }

  #compare(leaf: Leaf, list?: string): Condition {
    if (this.#next(6) === 0) return { kind: 'pr', leaf }
    const path = list === undefined ? leaf.path : `${list}.${leaf.path}`
    const stored = this.#users.flatMap((user) => valuesAt(path, user))
    if (leaf.type === 'boolean') {
      return { kind: 'compare', leaf, operator: this.#pick(['eq', 'ne']), value: this.#next(2) === 0 }
    }
    const ordering = this.#pick(['eq', 'ne', 'gt', 'ge', 'lt', 'le'])
    if (leaf.type === 'number') {
      return { kind: 'compare', leaf, operator: ordering, value: this.#pick([0, 5, -5, 9, 10, 11, 2.5]) }
    }
    if (leaf.type === 'time') {
      const value = this.#pick([...stored, '2026-01-01T00:00:00Z', '2025-06-01T10:00:00Z'])
      return { kind: 'compare', leaf, operator: ordering, value }
    }
    const operator = this.#pick(['eq', 'eq', 'eq', 'ne', 'co', 'co', 'sw', 'ew', ordering])
    const chosen = this.#next(4) === 0 || stored.length === 0 ? this.#pick(this.#pool) : String(this.#pick(stored))
    return { kind: 'compare', leaf, operator, value: this.#changed(chosen, operator) }
  }

  /** The text, or a part of it for an operator on parts, often with other letter case. */
  #changed(text: string, operator: string): string {
    const points = Array.from(text)
    const from = this.#next(points.length)
    const to = from + 1 + this.#next(points.length)
    const slices: Readonly<Record<string, readonly [number, number]>> = {
      co: [from, to],
      sw: [0, to],
      ew: [from, Number.MAX_SAFE_INTEGER],
    }
    const part = points.slice(...(slices[operator] ?? [0])).join('')
    return [part, part, part.toUpperCase(), part.toLowerCase()][this.#next(4)] ?? part
  }
}

/** A linear congruential generator (Numerical Recipes). */
function random(seed: number): (below: number) => number {
  let state = seed >>> 0
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

const resourcesOf = ({ body }: Answer): readonly JsonObject[] => (body['Resources'] ?? []) as readonly JsonObject[]

function print(condition: Condition): string {
  switch (condition.kind) {
    case 'and':
    case 'or':
      return condition.of.map((one) => `(${print(one)})`).join(` ${condition.kind} `)
    case 'not':
      return `not (${print(condition.of)})`
    case 'pr':
      return `${condition.leaf.path} pr`
    case 'compare':
      return `${condition.leaf.path} ${condition.operator} ${JSON.stringify(condition.value)}`
    case 'element':
      return `${condition.list}[${print(condition.of)}]`
  }
}

function matches(condition: Condition, user: JsonObject): boolean {
  switch (condition.kind) {
    case 'and':
      return condition.of.every((one) => matches(one, user))
    case 'or':
      return condition.of.some((one) => matches(one, user))
    case 'not':
      return !matches(condition.of, user)
    case 'pr':
      return valuesAt(condition.leaf.path, user, true).some((value) => value !== '')
    case 'compare': {
      const { leaf, operator, value } = condition
      const values = valuesAt(leaf.path, user)
      if (operator === 'ne') return !values.some((one) => holds(leaf, 'eq', one, value))
      return values.some((one) => holds(leaf, operator, one, value))
    }
    case 'element':
      return elementsOf(user[condition.list]).some((element) => isJsonObject(element) && matches(condition.of, element))
  }
}

function holds({ type }: Leaf, operator: string, stored: JsonValue, wanted: JsonValue): boolean {
  if (type === 'boolean') return stored === wanted
  if (type === 'time') return ordered(operator, Date.parse(String(stored)) - Date.parse(String(wanted)))
  if (type === 'number') return ordered(operator, Number(stored) - Number(wanted))
  const isPart = ['co', 'sw', 'ew'].includes(operator)
  const fold = (text: JsonValue): string => {
    if (type === 'exact') return String(text)
    const lower = String(text).toLowerCase()
    return isPart ? lower.replaceAll('ς', 'σ') : lower
  }
  const [a, b] = [fold(stored), fold(wanted)]
  if (operator === 'co') return a.includes(b)
  if (operator === 'sw') return a.startsWith(b)
  if (operator === 'ew') return a.endsWith(b)
  return ordered(operator, comparePoints(a, b))
}

function ordered(operator: string, difference: number): boolean {
  if (operator === 'eq') return difference === 0
  if (operator === 'gt') return difference > 0
  if (operator === 'ge') return difference >= 0
  return operator === 'lt' ? difference < 0 : difference <= 0
}

/** UTF-8 sorts like code points. */
const comparePoints = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b))

const elementsOf = (value: JsonValue | undefined): readonly JsonValue[] =>
  value === undefined ? [] : Array.isArray(value) ? value : [value as JsonValue]

/** The values at a path; of a list without a part its `value`, or with `whole` all parts. */
function valuesAt(path: string, user: JsonObject, whole = false): readonly JsonValue[] {
  const [, urn, rest = path] = /^(urn:.*):([^:]+)$/.exec(path) ?? []
  const [name = '', part] = rest.split('.')
  const holder = urn === undefined ? user : user[urn]
  const values = isJsonObject(holder) ? elementsOf(holder[name]) : []
  return values.flatMap((value): readonly JsonValue[] => {
    if (!isJsonObject(value)) return [value]
    if (part === undefined && whole) return Object.values(value)
    return elementsOf(value[part ?? 'value'])
  })
}

interface Key {
  readonly value: string | number
  readonly exact: string
}

/** The number of characters that count at least. */
const compared = 100

function keyOf({ path, type }: Leaf, user: JsonObject): Key | undefined {
  const [list = '', part = 'value'] = path.split('.')
  const elements = lists.includes(list) ? elementsOf(user[list]).filter(isJsonObject) : undefined
  const having = elements?.filter((element) => element[part] !== undefined && element[part] !== '')
  const preferred = having?.find(({ primary }) => primary === true) ?? having?.[0]
  const value = elements === undefined ? valuesAt(path, user)[0] : preferred?.[part]
  if (value === undefined) return undefined
  if (type === 'time') return { value: Date.parse(String(value)), exact: '' }
  if (type === 'boolean' || type === 'number') return { value: Number(value), exact: '' }
  const text = String(value)
  return { value: text.toLowerCase(), exact: type === 'exact' ? text : '' }
}

function compareKeys(a: Key | undefined, b: Key | undefined): number {
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined)
  if (typeof a.value === 'number' || typeof b.value === 'number') return Number(a.value) - Number(b.value)
  const start = (text: string): string => Array.from(text).slice(0, compared).join('')
  const order = comparePoints(start(a.value), start(b.value))
  return order === 0 && a.value === b.value ? comparePoints(start(a.exact), start(b.exact)) : order
}
