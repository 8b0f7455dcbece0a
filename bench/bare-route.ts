import process from 'node:process'
import Fastify from 'fastify'

/** The limit that SCIM reads are measured against: a Fastify route that answers a ready object of the same size. */
const body = JSON.parse(process.argv[3] ?? '{}') as object
const app = Fastify({ logger: false })
app.get('/user', () => body)
await app.listen({ host: '127.0.0.1', port: Number(process.argv[2]) })
