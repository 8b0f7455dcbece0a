import { spawnSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeCertificate } from '#protocols/admission/webhook-tls.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { isInstalled } from '#testing/run/installed.ts'

const authority = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const server = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const dates = { notBefore: new Date('2026-01-01T00:00:00Z'), notAfter: new Date('2060-01-01T00:00:00Z') }
const root = makeCertificate({
  commonName: 'root',
  issuerName: 'root',
  issuerKey: authority.privateKey,
  publicKey: authority.publicKey,
  ...dates,
})

test.skipIf(!isInstalled('openssl'))('OpenSSL accepts it in strict mode', () => {
  const names = ['gatehouse.svc']
  const leaf = makeCertificate({
    commonName: 'server',
    issuerName: 'root',
    issuerKey: authority.privateKey,
    publicKey: server.publicKey,
    names,
    ...dates,
  })
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'root.pem'), root)
  writeFileSync(join(folder, 'leaf.pem'), leaf)
  const args = [
    'verify',
    '-x509_strict',
    '-purpose',
    'sslserver',
    '-verify_hostname',
    'gatehouse.svc',
    '-CAfile',
    'root.pem',
    'leaf.pem',
  ]
  const { stdout, stderr } = spawnSync('openssl', args, { cwd: folder, encoding: 'utf8' })
  expect(`${stdout}${stderr}`).toBe('leaf.pem: OK\n')
})
