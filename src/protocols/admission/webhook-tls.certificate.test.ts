import { generateKeyPairSync, X509Certificate } from 'node:crypto'
import { expect, test } from 'vitest'
import { integer, makeCertificate, oid, time } from '#protocols/admission/webhook-tls.ts'

const authority = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const server = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const dates = { notBefore: new Date('2026-01-01T00:00:00Z'), notAfter: new Date('2060-01-01T00:00:00Z') }
test.each([
  ['integer 0', integer(Buffer.from([0, 0])), '020100'],
  ['integer 128', integer(Buffer.from([0x80])), '02020080'],
  ['integer 127', integer(Buffer.from([0, 0x7f])), '02017f'],
  ['object identifier', oid('1.2.840.10045.4.3.2'), '06082a8648ce3d040302'],
  ['time until 2049', time(new Date('2049-12-31T23:59:59Z')), `170d${Buffer.from('491231235959Z').toString('hex')}`],
  ['time from 2050', time(new Date('2050-01-01T00:00:00Z')), `180f${Buffer.from('20500101000000Z').toString('hex')}`],
])('%s', (_, encoded, hex) => {
  expect(encoded.toString('hex')).toBe(hex)
})

test('many names need long lengths, and are all read back', () => {
  const names = Array.from({ length: 40 }, (_, position) => `service-${position}.namespace.svc.cluster.local`)
  const made = makeCertificate({
    commonName: 'server',
    issuerName: 'root',
    issuerKey: authority.privateKey,
    publicKey: server.publicKey,
    names,
    ...dates,
  })
  const read = new X509Certificate(made)
  expect(read.subjectAltName).toBe(names.map((name) => `DNS:${name}`).join(', '))
  expect(read.verify(authority.publicKey)).toBe(true)
  expect(read.verify(server.publicKey)).toBe(false)
  expect(Date.parse(read.validTo)).toBe(dates.notAfter.getTime())
})
