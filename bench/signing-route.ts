import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import process from 'node:process'
import Fastify from 'fastify'

/** The upper limit of bare signing for such a server: a Fastify route that only reads the body and signs. */
const keys: Readonly<Record<string, KeyObject>> = {
  rs256: generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey,
  es256: generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
  eddsa: generateKeyPairSync('ed25519').privateKey,
}
const content = Buffer.alloc(400, 'a')
const app = Fastify({ logger: false })
app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_, body, done) =>
  done(null, body),
)
for (const [name, key] of Object.entries(keys)) {
  const digest = key.asymmetricKeyType === 'ed25519' ? null : 'sha256'
  app.post(`/sts/${name}/token`, (_, reply) => {
    sign(digest, content, key, (error, signature) =>
      error === null ? reply.send(signature.toString('base64url')) : reply.code(500).send(),
    )
  })
}
await app.listen({ host: '127.0.0.1', port: Number(process.argv[2]) })
