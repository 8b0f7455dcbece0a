import { hash } from 'node:crypto'
import process from 'node:process'
import { DatabaseSync } from 'node:sqlite'
import Fastify from 'fastify'

/**
 * What reading alone makes of the bare route: the token is hashed, the row is read, and what it holds is written as JSON.
 * No rules, no mapping, no log, no journal.
 */
const [, , port, file = '', address = ''] = process.argv
const database = new DatabaseSync(file, { readOnly: true })
const find = database.prepare('select name, version, created, modified, held from entries where id = ?')
const seen = new Set<string>()
const app = Fastify({ logger: false })
app.get<{ Params: { id: string } }>(`${address}/:id`, ({ headers, params }, reply) => {
  seen.add(hash('sha256', headers.authorization ?? '', 'base64url'))
  const { held, ...meta } = find.get(params.id) ?? {}
  const attributes: unknown = JSON.parse(String(held))
  void reply.type('application/json').send(JSON.stringify({ id: params.id, attributes, meta }))
})
await app.listen({ host: '127.0.0.1', port: Number(port) })
