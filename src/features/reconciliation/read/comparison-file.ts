import { createHash } from 'node:crypto'
import { unlinkSync } from 'node:fs'
import { join } from 'node:path'
import {
  DatabaseSync,
  type SQLInputValue,
  type SQLOutputValue,
  type StatementResultingChanges,
  type StatementSync,
} from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import type { CorrelationRule } from '#config/configuration/configuration.ts'
import type { Account, Person } from '#features/reconciliation/plan/compared-entry.ts'
import type { Match } from '#features/reconciliation/plan/decide.ts'
import type { AccountName } from '#features/reconciliation/plan/difference.ts'
import { newId } from '#kernel/ids.ts'
import { isExact, type Keyed, type Links, type RuleKeys, ruleName } from './systems.ts'
import { unreliable } from './whole-pages.ts'

/** What is known of a person: the numbers are those of the file. */
const states = { outside: 0, open: 1, matched: 2, ambiguous: 3, withoutAccount: 4 } as const

const schema = `
  pragma journal_mode = off;
  pragma synchronous = off;
  pragma locking_mode = exclusive;
  pragma cache_size = -32768;
  create table people (n integer primary key, key text not null unique, login text, state integer not null, rule integer,
    account integer, candidates text, keys text not null, data text not null);
  create index people_login on people (login);
  create table accounts (n integer primary key, key text not null unique, login text not null, in_scope integer not null,
    rule integer, blocked integer, keys text not null, data text not null);
  create index accounts_login on accounts (login);
  create table person_keys (rule integer, value text, n integer, primary key (rule, value, n)) without rowid;
  create table account_keys (rule integer, value text, n integer, primary key (rule, value, n)) without rowid;
`

/** The rule of an account that a link gives to someone who isn't in scope. */
const reserved = -1

/** One more than a plan shows. */
const mostCandidates = 11
const chunkSize = 500

const insertPerson =
  'insert into people (key, login, state, keys, data) values (?, ?, ?, ?, ?) on conflict (key) do nothing'
const insertAccount =
  'insert into accounts (key, login, in_scope, keys, data) values (?, ?, ?, ?, ?) on conflict (key) do nothing'

/** A person with the account that was found, in the order of keys. */
export interface PersonRow {
  readonly key: string
  readonly person: Person
  readonly match: Match
  /** The account is in scope, or there is none. */
  readonly isCompared: boolean
}

/** An account in scope that no person has. */
export interface SpareRow {
  readonly key: string
  readonly account: Account
  /** An ambiguous match names it, so that it is not extra. */
  readonly isInvolved: boolean
}

/** The same for one person or account in every comparison: its id, or without ids its login, in a bounded text. */
export const rowKey = ({ id, login }: AccountName): string => bounded(id ?? login.toLowerCase())

function bounded(text: string): string {
  if (text.length <= 200 && text.isWellFormed() && !text.includes('\0')) return text
  return `${text.slice(0, 100).toWellFormed().replaceAll('\0', '')}#${createHash('sha256').update(JSON.stringify(text)).digest('hex')}`
}

/** Letter case doesn't count when accounts are looked for, except by exact rules. */
const folded = (text: string): string => bounded(text.toLowerCase())

/**
 * Both sides of one comparison, in a file without a name that disappears with the process, or in memory. All work is
 * done in small portions, since it holds up the process.
 */
export class ComparisonFile {
  readonly #database: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()
  /** The first one is that of links. */
  readonly #rules: readonly { readonly name: string; readonly isExact: boolean }[]
  readonly #targetHasIds: boolean

  /** In memory without a folder. */
  constructor(rules: readonly CorrelationRule[], targetHasIds: boolean, folder?: string) {
    const named = rules.map((rule) => ({ name: ruleName(rule), isExact: isExact(rule) }))
    this.#rules = [{ name: 'link', isExact: true }, ...named]
    this.#targetHasIds = targetHasIds
    const file = folder === undefined ? ':memory:' : join(folder, `comparison-${newId()}.tmp`)
    this.#database = new DatabaseSync(file)
    this.#database.exec(schema)
    if (folder !== undefined) unlinkSync(file)
  }

  close(): void {
    this.#database.close()
  }

  /** Returns how many are new. Throws TARGET_FAILED for two people with one id. */
  addPeople(people: readonly Keyed<Person>[]): Promise<number> {
    return this.#add('people', people, ({ entry, inScope, keys }) => {
      const { name, wanted } = entry
      const login = wanted === undefined ? null : folded(wanted.login)
      const state = inScope ? states.open : states.outside
      const values = [rowKey(name), login, state, JSON.stringify(keys), JSON.stringify(entry)]
      return this.#prepared(insertPerson).run(...values)
    })
  }

  /** Returns how many are new. Throws TARGET_FAILED for two accounts with one id. */
  addAccounts(accounts: readonly Keyed<Account>[]): Promise<number> {
    return this.#add('accounts', accounts, ({ entry, inScope, keys }) => {
      const values = [
        rowKey(entry.name),
        folded(entry.login),
        inScope ? 1 : 0,
        JSON.stringify(keys),
        JSON.stringify(entry),
      ]
      return this.#prepared(insertAccount).run(...values)
    })
  }

  async #add<T extends Person | Account>(
    table: 'people' | 'accounts',
    entries: readonly Keyed<T>[],
    insert: (keyed: Keyed<T>) => StatementResultingChanges,
  ): Promise<number> {
    const keyTable = table === 'people' ? 'person_keys' : 'account_keys'
    const fresh = this.#together(() => {
      let count = 0
      for (const keyed of entries) {
        const { changes, lastInsertRowid } = insert(keyed)
        if (Number(changes) === 0) {
          this.#requireSame(table, keyed.entry.name)
          continue
        }
        count++
        for (const [i, values] of keyed.keys.entries())
          for (const value of values)
            this.#run(
              `insert or ignore into ${keyTable} values (?, ?, ?)`,
              i + 1,
              this.#key(i + 1, value),
              lastInsertRowid,
            )
      }
      return count
    })
    await setImmediate()
    return fresh
  }

  #key(rule: number, value: string): string {
    return this.#rules[rule]?.isExact === true ? bounded(value) : folded(value)
  }

  #keysIn(value: SQLOutputValue | undefined, rule: number): readonly string[] {
    return ((JSON.parse(text(value)) as RuleKeys)[rule - 1] ?? []).map((key) => this.#key(rule, key))
  }

  /** A page that moved while others were read has an entry again. */
  #requireSame(table: 'people' | 'accounts', name: AccountName): void {
    const row = this.#database.prepare(`select data from ${table} where key = ?`).get(rowKey(name))
    const { name: earlier } = JSON.parse(text(row?.['data'])) as Person
    if (earlier.login === name.login) return
    const shared = name.id === undefined ? 'the same login but for letter case' : `the id "${name.id}"`
    throw unreliable(`"${earlier.login}" and "${name.login}" have ${shared}, so they cannot be distinguished`)
  }

  #together<T>(work: () => T): T {
    this.#database.exec('begin')
    const result = work()
    this.#database.exec('commit')
    return result
  }

  /**
   * Connects people and accounts: by links first, and then by each rule, among those that no earlier rule connected. Yields
   * after each portion.
   */
  async *correlate(links: Links): AsyncGenerator<void> {
    yield* this.#readLinks(links)
    const linked = `select n, value from person_keys where rule = 0 and (value, n) > (?, ?) order by value, n limit ${chunkSize}`
    yield* this.#portions(linked, ['', 0], (row) => {
      this.#connect(Number(row['n']), 0, [text(row['value'])])
      return [text(row['value']), Number(row['n'])]
    })
    for (const rule of this.#rules.keys()) {
      if (rule === 0) continue
      const open = `select n, keys from people where state = ${states.open} and n > ? order by n limit ${chunkSize}`
      yield* this.#portions(open, [0], (row) => {
        this.#connect(Number(row['n']), rule, this.#keysIn(row['keys'], rule))
        return [Number(row['n'])]
      })
    }
  }

  /** A link whose account is gone doesn't count. An account that a link gives to no one in scope is no one else's. */
  async *#readLinks({ links, linksByTarget }: Links): AsyncGenerator<void> {
    const people = `select n, key, data from people where state = ${states.open} and n > ? order by n limit ${chunkSize}`
    yield* this.#batches(people, async (rows) => {
      const found = await links(rows.map(({ name }) => name.id ?? name.login))
      const known = new Map(found.map((link) => [link.source, link.target]))
      return () => {
        for (const { n, name } of rows) {
          const person = name.id ?? name.login
          if (!known.has(person)) continue
          const target = known.get(person)
          if (target === undefined) this.#run(`update people set state = ${states.withoutAccount} where n = ?`, n)
          else this.#link(n, this.#accountKey(target))
        }
      }
    })
    yield* this.#batches(
      `select n, key, data from accounts where n > ? order by n limit ${chunkSize}`,
      async (rows) => {
        const found = await linksByTarget(rows.map(({ name }) => name.id ?? name.login))
        const given = new Set(found.flatMap(({ target }) => (target === undefined ? [] : [this.#accountKey(target)])))
        return () => {
          for (const { n, key } of rows) {
            if (!given.has(key) || this.#all('select 1 from account_keys where rule = 0 and value = ?', key).length > 0)
              continue
            this.#run(`update accounts set rule = ${reserved} where n = ?`, n)
          }
        }
      },
    )
  }

  #link(person: number, accountKey: string): void {
    const [account] = this.#all('select n from accounts where key = ?', accountKey)
    if (account === undefined) return
    this.#run('insert or ignore into person_keys values (0, ?, ?)', accountKey, person)
    this.#run('insert or ignore into account_keys values (0, ?, ?)', accountKey, Number(account['n']))
  }

  #accountKey(linked: string): string {
    return this.#targetHasIds ? rowKey({ id: linked, login: '' }) : rowKey({ login: linked })
  }

  async *#batches(
    statement: string,
    prepare: (rows: readonly { n: number; key: string; name: AccountName }[]) => Promise<() => void>,
  ): AsyncGenerator<void> {
    let after = 0
    for (;;) {
      const rows = this.#all(statement, after).map(({ n, key, data }) => {
        const { name } = JSON.parse(text(data)) as { readonly name: AccountName }
        return { n: Number(n), key: text(key), name }
      })
      const last = rows.at(-1)
      if (last === undefined) return
      this.#together(await prepare(rows))
      after = last.n
      yield
    }
  }

  /** `work` returns where the row is in the order. */
  async *#portions(
    statement: string,
    start: readonly SQLInputValue[],
    work: (row: Row) => readonly SQLInputValue[],
  ): AsyncGenerator<void> {
    let after = start
    for (;;) {
      const rows = this.#all(statement, ...after)
      if (rows.length === 0) return
      this.#together(() => {
        for (const row of rows) after = work(row)
      })
      await setImmediate()
      yield
    }
  }

  #connect(person: number, rule: number, values: readonly string[]): void {
    const candidates = this.#accountsFor(rule, values)
    const [first] = candidates
    if (first === undefined) return
    const isFree = candidates.length === 1 && !first.isBlocked
    const people = isFree ? this.#peopleFor(rule, first.values) : []
    if (people.length === 1) {
      this.#run(`update people set state = ${states.matched}, rule = ?, account = ? where n = ?`, rule, first.n, person)
      this.#run('update accounts set rule = ? where n = ?', rule, first.n)
      return
    }
    const named = isFree
      ? { between: 'people', names: people.flatMap(({ n, name }) => (n === person ? [] : [name])) }
      : { between: 'accounts', names: candidates.map(({ name }) => name) }
    const update = `update people set state = ${states.ambiguous}, rule = ?, candidates = ? where n = ?`
    this.#run(update, rule, JSON.stringify(named), person)
    for (const { n } of candidates) this.#run('update accounts set blocked = coalesce(blocked, ?) where n = ?', rule, n)
  }

  /** Those that no earlier rule connected. */
  #accountsFor(rule: number, values: readonly string[]) {
    const statement = `select a.n, a.blocked, a.keys, a.data from account_keys as k join accounts as a on a.n = k.n
      where k.rule = ? and k.value = ? and (a.rule is null or a.rule = ?) limit ${mostCandidates}`
    const rows = values.flatMap((value) => this.#all(statement, rule, value, rule))
    const byNumber = new Map(rows.map((row) => [Number(row['n']), row]))
    return Array.from(byNumber.values(), ({ n, blocked, keys, data }) => {
      const { name } = JSON.parse(text(data)) as Account
      const isBlocked = blocked !== null && Number(blocked) < rule
      return { n: Number(n), name, isBlocked, values: rule === 0 ? [rowKey(name)] : this.#keysIn(keys, rule) }
    })
  }

  /** Those that no earlier rule decided. */
  #peopleFor(rule: number, values: readonly string[]) {
    const statement = `select p.n, p.data from person_keys as k join people as p on p.n = k.n
      where k.rule = ? and k.value = ? and (p.state = ${states.open} or p.rule = ?) limit ${mostCandidates + 1}`
    const rows = values.flatMap((value) => this.#all(statement, rule, value, rule))
    const names = new Map(rows.map(({ n, data }) => [Number(n), (JSON.parse(text(data)) as Person).name]))
    return Array.from(names, ([n, name]) => ({ n, name }))
  }

  /** The names of people in scope who get the login. At most eleven. */
  peopleWithLogin(login: string): AccountName[] {
    const statement = `select data from people where login = ? and state <> ${states.outside} limit ${mostCandidates}`
    return this.#all(statement, folded(login)).map(({ data }) => (JSON.parse(text(data)) as Person).name)
  }

  /** People in scope behind the key, in order, with what was found. */
  people(after: string, limit: number): PersonRow[] {
    const statement = `select p.n, p.key, p.login, p.state, p.rule, p.candidates, p.data, a.data as account, a.in_scope
      from people as p left join accounts as a on a.n = p.account
      where p.key > ? and p.state <> ${states.outside} order by p.key limit ?`
    return this.#all(statement, after, limit).map((row) => ({
      key: text(row['key']),
      person: JSON.parse(text(row['data'])) as Person,
      match: this.#matchOf(row),
      isCompared: row['in_scope'] === null || row['in_scope'] === 1,
    }))
  }

  #matchOf({ n, login, state, rule, candidates, account }: Row): Match {
    const name = this.#rules[Number(rule)]?.name ?? ''
    if (state === states.matched) return { kind: 'account', account: JSON.parse(text(account)) as Account, rule: name }
    if (state === states.ambiguous) {
      const { between, names } = JSON.parse(text(candidates)) as {
        between: 'accounts' | 'people'
        names: AccountName[]
      }
      return { kind: 'ambiguous', rule: name, between, candidates: names }
    }
    if (login === null) return { kind: 'none' }
    const [taken] = this.#all('select data from accounts where login = ? limit 1', text(login))
    if (taken !== undefined) return { kind: 'taken', account: (JSON.parse(text(taken['data'])) as Account).name }
    const others = `select data from people where login = ? and n <> ? and state in (${states.open}, ${states.withoutAccount}) limit ${mostCandidates}`
    const people = this.#all(others, text(login), Number(n)).map(({ data }) => (JSON.parse(text(data)) as Person).name)
    return people.length === 0 ? { kind: 'none' } : { kind: 'shared', people }
  }

  /** Accounts in scope behind the key that no person has, in order. */
  spares(after: string, limit: number): SpareRow[] {
    const isWanted = `exists (select 1 from people as p where p.login = accounts.login and p.state in (${states.open}, ${states.withoutAccount}))`
    const statement = `select key, data, blocked is not null or ${isWanted} as involved from accounts
      where key > ? and in_scope = 1 and (rule is null or rule = ${reserved}) order by key limit ?`
    return this.#all(statement, after, limit).map(({ key, data, involved }) => ({
      key: text(key),
      account: JSON.parse(text(data)) as Account,
      isInvolved: involved === 1,
    }))
  }

  /** People in scope who could not be mapped, as they were read. */
  unmappedPeople(limit: number): AccountName[] {
    const statement = `select data from people where login is null and state <> ${states.outside} limit ?`
    return this.#all(statement, limit).map(({ data }) => (JSON.parse(text(data)) as Person).name)
  }

  /** How many people without an account could not be mapped. */
  unmapped(): number {
    const [row] = this.#all(
      `select count(*) as count from people where state in (${states.open}, ${states.withoutAccount}) and login is null`,
    )
    return Number(row?.['count'])
  }

  #all(statement: string, ...values: readonly SQLInputValue[]): Row[] {
    return this.#prepared(statement).all(...values)
  }

  #run(statement: string, ...values: readonly SQLInputValue[]): void {
    this.#prepared(statement).run(...values)
  }

  #prepared(statement: string): StatementSync {
    const known = this.#statements.get(statement) ?? this.#database.prepare(statement)
    this.#statements.set(statement, known)
    return known
  }
}

type Row = Record<string, SQLOutputValue>

const text = (value: SQLOutputValue | undefined): string => (typeof value === 'string' ? value : '')
