import { hash } from 'node:crypto'
import process from 'node:process'
import { DatabaseSync } from 'node:sqlite'
import Fastify from 'fastify'

/**
 * Reading alone, on the bare route: the token is hashed, one row is read by its id or a hundred with their groups, and
 * written as JSON. No rules, no mapping, no log, no journal.
 */
const [, , port, file = '', address = ''] = process.argv
const database = new DatabaseSync(file, { readOnly: true })
database.exec('pragma mmap_size = 268435456')
const find = database.prepare('select name, version, created, modified, attributes from entries where id = ?')
const page = database.prepare(`
  select id, name, version, created, modified, attributes, (
    select json_group_array(json_array(g.name, g.id))
    from memberships m cross join entries g where m.user_entry = e.pk and g.pk = m.group_entry
  ) as groups
  from entries e where collection = ? and pk > 0 order by pk limit 100`)
const first = database.prepare(`select max(collection) as users from entries where key = 'user0000000'`).get()
const users = Number(first?.['users'])
const seen = new Set<string>()

interface Row {
  readonly attributes?: unknown
  readonly groups?: unknown
}

function show({ attributes, groups = '[]', ...meta }: Row): object {
  const list: unknown = JSON.parse(String(attributes))
  return { attributes: list, groups: JSON.parse(String(groups)) as unknown, meta }
}

const see = (token = ''): unknown => seen.add(hash('sha256', token, 'base64url'))

const app = Fastify({ logger: false })
app.get<{ Params: { id: string } }>(`${address}/:id`, ({ headers, params }, reply) => {
  see(headers.authorization)
  void reply.type('application/json').send(JSON.stringify(show(find.get(params.id) ?? {})))
})
app.get(address, ({ headers }, reply) => {
  see(headers.authorization)
  void reply.type('application/json').send(JSON.stringify({ Resources: page.all(users).map(show) }))
})
await app.listen({ host: '127.0.0.1', port: Number(port) })
