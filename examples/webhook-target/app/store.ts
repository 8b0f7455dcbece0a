import { randomUUID, scryptSync } from 'node:crypto'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'

export interface Person {
  readonly login: string
  readonly name: string | null
  readonly phone: string | null
  readonly active: boolean
  readonly emails: readonly string[]
}

export interface Team {
  readonly name: string
  readonly description: string | null
  readonly externalId: string | null
}

export interface Page {
  readonly offset: number
  readonly limit: number
}

/** A request that cannot be done, by the status it is answered with. */
export class Refusal extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

const schema = `
  CREATE TABLE IF NOT EXISTS people (
    id TEXT PRIMARY KEY, key TEXT NOT NULL UNIQUE, version INTEGER NOT NULL, document TEXT NOT NULL, password TEXT);
  CREATE TABLE IF NOT EXISTS emails (
    person TEXT NOT NULL REFERENCES people(id) ON DELETE CASCADE, key TEXT NOT NULL);
  CREATE INDEX IF NOT EXISTS emails_by_key ON emails(key);
  CREATE INDEX IF NOT EXISTS emails_by_person ON emails(person);
  CREATE TABLE IF NOT EXISTS teams (
    id TEXT PRIMARY KEY, key TEXT NOT NULL UNIQUE, version INTEGER NOT NULL, document TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS members (
    team TEXT NOT NULL REFERENCES teams(id) ON DELETE CASCADE,
    person TEXT NOT NULL REFERENCES people(id) ON DELETE CASCADE,
    PRIMARY KEY (team, person));
  CREATE INDEX IF NOT EXISTS members_by_person ON members(person);
  CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, status INTEGER NOT NULL, body TEXT NOT NULL);
`

type Row = Record<string, unknown>

/** Logins, names and addresses are the same in any letter case. Kept as JSON text, which holds any character. */
const keyOf = (text: string): string => JSON.stringify(text.toLowerCase())

/** People, teams and who is in which, in one SQLite file. Every change gives a new version. */
export class Store {
  readonly #db: DatabaseSync
  readonly #passwordCost: number
  readonly #statements = new Map<string, StatementSync>()

  constructor(file: string, passwordCost: number) {
    this.#passwordCost = passwordCost
    this.#db = new DatabaseSync(file)
    this.#db.exec('PRAGMA journal_mode = WAL; PRAGMA foreign_keys = ON')
    this.#db.exec(schema)
  }

  /** All of it happens, or nothing. */
  transaction<T>(work: () => T): T {
    this.#db.exec('BEGIN IMMEDIATE')
    try {
      const result = work()
      this.#db.exec('COMMIT')
      return result
    } catch (error) {
      this.#db.exec('ROLLBACK')
      throw error
    }
  }

  person(id: string) {
    return this.#all('SELECT * FROM people WHERE id = ?', id).map((row) => this.#shownPerson(row))[0]
  }

  people(by: { readonly login?: string | undefined; readonly email?: string | undefined }, page: Page) {
    const { login, email } = by
    if (login !== undefined)
      return this.#page('people WHERE key = ?', [keyOf(login)], page, (row) => this.#shownPerson(row))
    if (email === undefined) return this.#page('people', [], page, (row) => this.#shownPerson(row))
    const where = 'people WHERE id IN (SELECT person FROM emails WHERE key = ?)'
    return this.#page(where, [keyOf(email)], page, (row) => this.#shownPerson(row))
  }

  addPerson(person: Person) {
    const id = randomUUID()
    this.#requireFree('people', person.login)
    this.#run(
      'INSERT INTO people (id, key, version, document) VALUES (?, ?, 1, ?)',
      id,
      keyOf(person.login),
      JSON.stringify(person),
    )
    this.#writeEmails(id, person)
    return this.person(id)
  }

  changePerson(id: string, change: Partial<Person>, ifMatch: string | undefined) {
    const row = this.#require('people', id, ifMatch)
    const person = { ...(JSON.parse(String(row['document'])) as Person), ...change }
    this.#requireFree('people', person.login, id)
    const statement = 'UPDATE people SET key = ?, document = ?, version = version + 1 WHERE id = ?'
    this.#run(statement, keyOf(person.login), JSON.stringify(person), id)
    this.#run('DELETE FROM emails WHERE person = ?', id)
    this.#writeEmails(id, person)
    return this.person(id)
  }

  setPassword(id: string, password: string): void {
    this.#require('people', id)
    const hash = scryptSync(password, id, 32, { N: this.#passwordCost })
    this.#run('UPDATE people SET password = ? WHERE id = ?', hash.toString('hex'), id)
  }

  team(id: string) {
    return this.#all('SELECT * FROM teams WHERE id = ?', id).map(shownTeam)[0]
  }

  teams(name: string | undefined, page: Page) {
    if (name === undefined) return this.#page('teams', [], page, shownTeam)
    return this.#page('teams WHERE key = ?', [keyOf(name)], page, shownTeam)
  }

  addTeam(team: Team) {
    const id = randomUUID()
    this.#requireFree('teams', team.name)
    this.#run(
      'INSERT INTO teams (id, key, version, document) VALUES (?, ?, 1, ?)',
      id,
      keyOf(team.name),
      JSON.stringify(team),
    )
    return this.team(id)
  }

  changeTeam(id: string, change: Partial<Team>, ifMatch: string | undefined) {
    const row = this.#require('teams', id, ifMatch)
    const team = { ...(JSON.parse(String(row['document'])) as Team), ...change }
    this.#requireFree('teams', team.name, id)
    const statement = 'UPDATE teams SET key = ?, document = ?, version = version + 1 WHERE id = ?'
    this.#run(statement, keyOf(team.name), JSON.stringify(team), id)
    return this.team(id)
  }

  remove(table: 'people' | 'teams', id: string, ifMatch: string | undefined): void {
    this.#require(table, id, ifMatch)
    this.#run(`DELETE FROM ${table} WHERE id = ?`, id)
  }

  members(team: string, page: Page) {
    this.#require('teams', team)
    const from = 'people WHERE id IN (SELECT person FROM members WHERE team = ?)'
    return this.#page(from, [team], page, ({ id, document }) => {
      const { login } = JSON.parse(String(document)) as Person
      return { id, login }
    })
  }

  join(team: string, person: string): void {
    this.#require('teams', team)
    this.#require('people', person)
    const added = this.#run('INSERT OR IGNORE INTO members (team, person) VALUES (?, ?)', team, person)
    if (added > 0) this.#run('UPDATE people SET version = version + 1 WHERE id = ?', person)
  }

  leave(team: string, person: string): void {
    const removed = this.#run('DELETE FROM members WHERE team = ? AND person = ?', team, person)
    if (removed === 0) throw new Refusal(404, 'no such member')
    this.#run('UPDATE people SET version = version + 1 WHERE id = ?', person)
  }

  /** What a request with this key was answered with before. */
  answerTo(key: string): { readonly status: number; readonly body: string } | undefined {
    const [row] = this.#all('SELECT status, body FROM answers WHERE key = ?', key)
    return row && { status: Number(row['status']), body: String(row['body']) }
  }

  keepAnswer(key: string, status: number, body: string): void {
    this.#run('INSERT INTO answers (key, status, body) VALUES (?, ?, ?)', key, status, body)
  }

  #shownPerson({ id, version, document }: Row) {
    const query = 'SELECT teams.* FROM members JOIN teams ON teams.id = team WHERE person = ? ORDER BY teams.rowid'
    const teams = this.#all(query, String(id)).map((row) => ({ id: row['id'], name: shownTeam(row).name }))
    return { id, version, ...(JSON.parse(String(document)) as Person), teams }
  }

  #page<T>(from: string, args: readonly string[], { offset, limit }: Page, shown: (row: Row) => T) {
    const [count] = this.#all(`SELECT count(*) AS total FROM ${from}`, ...args)
    const rows = this.#all(`SELECT * FROM ${from} ORDER BY rowid LIMIT ? OFFSET ?`, ...args, limit, offset)
    return { total: Number(count?.['total']), items: rows.map(shown) }
  }

  #writeEmails(id: string, { emails }: Person): void {
    for (const email of emails) this.#run('INSERT INTO emails (person, key) VALUES (?, ?)', id, keyOf(email))
  }

  #requireFree(table: 'people' | 'teams', name: string, id = ''): void {
    const [other] = this.#all(`SELECT id FROM ${table} WHERE key = ? AND id <> ?`, keyOf(name), id)
    if (other !== undefined) throw new Refusal(409, 'this name is taken')
  }

  /** The version in quotes, as an entity tag. */
  #require(table: 'people' | 'teams', id: string, ifMatch?: string): Row {
    const [row] = this.#all(`SELECT * FROM ${table} WHERE id = ?`, id)
    if (row === undefined) throw new Refusal(404, 'there is none')
    if (ifMatch !== undefined && ifMatch !== `"${row['version']}"`) throw new Refusal(412, 'it was changed meanwhile')
    return row
  }

  /** There are few of them, and each is prepared once. */
  #prepared(text: string): StatementSync {
    const statement = this.#statements.get(text) ?? this.#db.prepare(text)
    this.#statements.set(text, statement)
    return statement
  }

  #all(statement: string, ...args: SQLInputValue[]): Row[] {
    return this.#prepared(statement).all(...args) as Row[]
  }

  #run(statement: string, ...args: SQLInputValue[]): number {
    return Number(this.#prepared(statement).run(...args).changes)
  }
}

function shownTeam({ id, version, document }: Row) {
  return { id, version, ...(JSON.parse(String(document)) as Team) }
}
