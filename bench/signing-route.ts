import { generateKeyPairSync, sign } from 'node:crypto'
import process from 'node:process'
import Fastify from 'fastify'

/** The upper limit of bare signing for such a server: a Fastify route that only reads the body and signs. */
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const content = Buffer.alloc(400, 'a')
const app = Fastify({ logger: false })
app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_, body, done) =>
  done(null, body),
)
app.post('/sts/cloud/token', (_, reply) => {
  sign('sha256', content, privateKey, (error, signature) =>
    error === null ? reply.send(signature.toString('base64url')) : reply.code(500).send(),
  )
})
await app.listen({ host: '127.0.0.1', port: Number(process.argv[2]) })
