import { hash, randomUUID } from 'node:crypto'
import process from 'node:process'
import { DatabaseSync } from 'node:sqlite'
import Fastify from 'fastify'

/**
 * Writing alone, compared with bare inserts: prepared statements store the rows of a new user and of its audit,
 * concurrent ones in one commit, after a lookup of the login. No checks, no rules, no mapping, no workflow, no log, no
 * journal, and nothing is read back.
 */
const [, , port, file = '', address = ''] = process.argv
const database = new DatabaseSync(file)
database.exec(`pragma busy_timeout = 1000; pragma synchronous = full; pragma foreign_keys = on;
  pragma cache_size = -16000; pragma mmap_size = 268435456`)
const prepare = (text: string) => database.prepare(text)
const { collection } =
  prepare(`select max(collection) as collection from entries where key = 'user0000000'`).get() ?? {}
const users = Number(collection)
const find = prepare('select pk from entries where collection = ? and key = ?')
const entry = prepare(`insert into entries (collection, id, name, key, attributes, version, created, modified)
  values (?, ?, ?, ?, ?, 1, ?, ?)`)
const attributes = prepare(`insert into attributes (entry, name_key, position, collection, name, value, value_key)
  values ${Array(6).fill('(?, ?, 0, ?, ?, ?, ?)')}`)
const size = prepare('update collection_sizes set size = size + 1 where collection = ? and slot = 0')
const head = prepare('select seq, hash from audit_chains where chain = 0')
const audit = prepare(`insert into audit (id, time, requestor, requestor_key, subject, subject_key, workflow_id,
  workflow_name, target, changes, chain, chain_seq, hash)
  values (?, ?, 'idp', 'idp', ?, ?, ?, 'people-sync', 'people', ?, 0, ?, ?)`)
const link = prepare('update audit_chains set seq = ?, hash = ? where chain = 0')

interface Person {
  readonly userName: string
  readonly name: { readonly givenName: string; readonly familyName: string }
  readonly emails: readonly { readonly value: string }[]
}

function create({ userName, name, emails: [mail] }: Person): string {
  const key = userName.toLowerCase()
  if (find.get(users, key) !== undefined) throw new Error(`${userName} is taken`)
  const now = Date.now()
  const id = `${now.toString(16)}-${randomUUID()}`
  const pairs = [
    ['userName', userName],
    ['name.givenName', name.givenName],
    ['name.familyName', name.familyName],
    ['emails', JSON.stringify(mail)],
    ['emails.value', mail?.value ?? ''],
    ['active', 'true'],
  ] as const
  const stored = JSON.stringify(pairs.map(([of, value]) => [of, [value]]))
  const { lastInsertRowid: pk } = entry.run(users, id, userName, key, stored, now, now)
  attributes.run(...pairs.flatMap(([of, value]) => [pk, of.toLowerCase(), users, of, value, value.toLowerCase()]))
  size.run(users)
  const last = head.get()
  const seq = Number(last?.['seq']) + 1
  const changes = JSON.stringify(pairs.map(([of, value]) => [randomUUID(), 'attribute', 'add', of, value]))
  const digest = hash('sha256', `${last?.['hash']} ${seq} ${now} ${id} ${userName} ${changes}`, 'base64url')
  audit.run(randomUUID(), now, userName, key, id, changes, seq, digest)
  link.run(seq, digest)
  return id
}

let waiting: { readonly person: Person; done(id: string): void }[] = []

function commit(): void {
  const together = waiting
  waiting = []
  database.exec('begin immediate')
  const ids = together.map(({ person }) => create(person))
  database.exec('commit')
  for (const [i, { done }] of together.entries()) done(ids[i] ?? '')
}

const app = Fastify({ logger: false })
app.addContentTypeParser('application/scim+json', { parseAs: 'string' }, app.getDefaultJsonParser('error', 'error'))
app.post<{ Body: Person }>(address, ({ headers, body }, reply) => {
  hash('sha256', headers.authorization ?? '', 'base64url')
  if (waiting.length === 0) setImmediate(commit)
  waiting.push({ person: body, done: (id) => void reply.code(201).send({ ...body, id }) })
})
await app.listen({ host: '127.0.0.1', port: Number(port) })
