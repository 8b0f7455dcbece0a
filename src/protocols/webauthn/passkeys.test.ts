import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import type { JsonObject } from '#kernel/json.ts'
import { type RelyingParty, verifyCreation, verifyRequest } from '#protocols/webauthn/passkeys.ts'
import { type SoftAnswer, SoftAuthenticator } from '#testing/login/soft-authenticator.ts'

const site: RelyingParty = {
  id: 'portal.test',
  name: 'Portal',
  origin: 'https://portal.test',
  userVerification: 'preferred',
}
const challenge = Buffer.from('a challenge').toString('base64url')
const right: SoftAnswer = { origin: site.origin, rpId: site.id, challenge }

const created = (more: Partial<SoftAnswer> = {}, device = new SoftAuthenticator()) =>
  verifyCreation(site, challenge, device.create({ ...right, ...more }))

/** One element of DER. */
function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}
const oid = (hex: string): Buffer => der(0x06, Buffer.from(hex, 'hex'))
const bytes = (content: Uint8Array): Buffer => der(0x04, content)
const number = (value: number): Buffer => der(0x02, Buffer.from([value]))
const choice = (value: number): Buffer => der(0x0a, Buffer.from([value]))
const name = (text: string): Buffer => der(0x30, der(0x31, der(0x30, oid('550403'), der(0x0c, Buffer.from(text)))))
const byEcdsa = der(0x30, oid('2a8648ce3d040302'))

function certificate(serial: number, subject: string, key: KeyObject, signer: KeyObject, extensions: Buffer[]) {
  const time = (text: string): Buffer => der(0x17, Buffer.from(text))
  const content = der(
    0x30,
    der(0xa0, number(2)),
    number(serial),
    byEcdsa,
    name('root'),
    der(0x30, time('200101000000Z'), time('491231000000Z')),
    name(subject),
    key.export({ type: 'spki', format: 'der' }),
    der(0xa3, der(0x30, ...extensions)),
  )
  const signature = sign('sha256', content, signer)
  return new Uint8Array(der(0x30, content, byEcdsa, der(0x03, Buffer.from([0]), signature)))
}

/** Certificates of an own root, with the address of a list of revoked ones. */
function androidKey(address: string) {
  const root = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return (clientDataHash: Buffer, publicKey: KeyObject) => {
    const description = der(
      0x30,
      ...[
        number(3),
        choice(1),
        number(4),
        choice(1),
        bytes(clientDataHash),
        bytes(Buffer.alloc(0)),
        der(0x30),
        der(0x30),
      ],
    )
    const revoked = der(0x30, der(0x30, der(0xa0, der(0xa0, der(0x86, Buffer.from(address))))))
    const leaf = certificate(2, 'leaf', publicKey, root.privateKey, [
      der(0x30, oid('2b06010401d679020111'), bytes(description)),
      der(0x30, oid('551d1f'), bytes(revoked)),
    ])
    const authority = der(0x30, oid('551d13'), bytes(der(0x30, der(0x01, Buffer.from([255])))))
    const x5c = [leaf, certificate(1, 'root', root.publicKey, root.privateKey, [authority])]
    const attStmt = new Map<string, number | Uint8Array<ArrayBuffer> | Uint8Array<ArrayBuffer>[]>([
      ['alg', -7],
      ['sig', new Uint8Array(64)],
      ['x5c', x5c],
    ])
    return { fmt: 'android-key', attStmt }
  }
}

test('an attestation is not read, so no address in its certificates is fetched', async () => {
  let requests = 0
  const server = createServer((_, response) => {
    requests++
    response.end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    const { port } = server.address() as AddressInfo
    const outcome = await created({ attestation: androidKey(`http://127.0.0.1:${port}/crl`) })
    expect([requests, outcome.ok]).toEqual([0, true])
  } finally {
    server.close()
  }
})

test.each<[string, Partial<SoftAnswer>]>([
  ['in a frame of another site', { crossOrigin: true }],
  ['without a user', { userPresent: false }],
  ['with no algorithm of ours', { algorithm: -65535 }],
  ['with an unknown algorithm', { algorithm: 7 }],
])('a passkey that was created %s is refused', async (_case, more) => {
  expect(await created(more)).toMatchObject({ ok: false })
})

test.each<[string, Partial<SoftAnswer>]>([
  ['in a frame of another site', { crossOrigin: true }],
  ['without a user', { userPresent: false }],
])('a passkey that was used %s is refused', async (_case, more) => {
  const device = new SoftAuthenticator()
  const made = await created({}, device)
  if (!made.ok) throw new Error(made.reason)
  const known = [{ ...made.credential, counter: made.counter }]
  const used = (answer: SoftAnswer) => verifyRequest(site, challenge, device.get(answer), known)
  expect(await used({ ...right, ...more })).toMatchObject({ ok: false })
  expect(await used(right)).toMatchObject({ ok: true })
})

test('the key of a passkey is not chosen by its answer', async () => {
  const device = new SoftAuthenticator()
  const made = await created({}, device)
  if (!made.ok) throw new Error(made.reason)
  const other = new SoftAuthenticator()
  const known = [{ ...made.credential, counter: 0 }]
  const answer = { ...other.get(right), id: device.id, rawId: device.id, publicKey: other.id }
  expect(await verifyRequest(site, challenge, answer, known)).toMatchObject({ ok: false })
})

/** CBOR that claims to be long, nests, ends early or repeats itself, at the place of the attestation or of the key. */
test('malformed CBOR is refused at once', async () => {
  const device = new SoftAuthenticator()
  const good = device.create(right)
  const inner = good['response'] as JsonObject
  const object = Buffer.from(String(inner['attestationObject']), 'base64url')
  const hostile = [
    Buffer.alloc(0),
    Buffer.alloc(40_000, 0x81),
    Buffer.alloc(40_000, 0xa1),
    Buffer.alloc(40_000, 0x9f),
    Buffer.alloc(40_000, 0xd8),
    Buffer.from('9bffffffffffffffff', 'hex'),
    Buffer.from('bbffffffffffffffff', 'hex'),
    Buffer.from('5b7fffffffffffffff', 'hex'),
    Buffer.from('7b00000000ffffffff', 'hex'),
    Buffer.from('9affffffff', 'hex'),
    Buffer.from('a363666d74646e6f6e656761747453746d74a068617574684461746118ff', 'hex'),
    ...Array.from({ length: 60 }, (_, i) => object.subarray(0, i * 5)),
    ...Array.from({ length: 150 }, (_, i) => {
      const changed = Buffer.from(object)
      changed[i % changed.length] = (i * 37) & 255
      return changed
    }),
    ...[0x81, 0x9f, 0xbf, 0x5f].map((byte) => Buffer.concat([object.subarray(0, -77), Buffer.alloc(30_000, byte)])),
  ]
  const began = performance.now()
  for (const bad of hostile) {
    const response = { ...inner, attestationObject: bad.toString('base64url') }
    const outcome = await verifyCreation(site, challenge, { ...good, response })
    if (outcome.ok) expect(outcome.credential.id).toBeTypeOf('string')
    else expect(outcome.reason.length).toBeLessThanOrEqual(500)
  }
  expect(performance.now() - began).toBeLessThan(5000)
})
