import { execFileSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { testServerCertificate } from '#testing/gateway/test-certificates.ts'
import { readPrivateKey, readPrivateKeyFile } from './private-key-file.ts'

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const pem = String(privateKey.export({ type: 'pkcs8', format: 'pem' }))

test('a private key is found in a .key or a .pem file, after certificates and public keys', async () => {
  const folder = temporaryFolder()
  await writeFile(join(folder, 'a.key'), pem)
  await writeFile(join(folder, 'b.pem'), String(privateKey.export({ type: 'sec1', format: 'pem' })))
  await writeFile(join(folder, 'c.pem'), testServerCertificate)
  await writeFile(join(folder, 'd.pem'), String(publicKey.export({ type: 'spki', format: 'pem' })))
  for (const name of ['a', 'b'])
    expect((await readPrivateKeyFile(folder, name, 'ES256'))?.equals(privateKey)).toBe(true)
  for (const name of ['c', 'd', 'none']) expect(await readPrivateKeyFile(folder, name, 'ES256')).toBeUndefined()
})

test('a named pipe is refused without waiting for a writer', async () => {
  const folder = temporaryFolder()
  execFileSync('mkfifo', [join(folder, 'a.key')])
  await expect(readPrivateKeyFile(folder, 'a', 'ES256')).rejects.toThrow('a.key is not a file')
})

test('no name leaves the folder', async () => {
  const folder = temporaryFolder()
  await writeFile(join(folder, 'outside.key'), pem)
  for (const name of ['../outside', join(folder, 'outside'), 'x/../outside', '..', '']) {
    expect(await readPrivateKeyFile(join(folder, 'keys'), name, 'ES256')).toBeUndefined()
  }
})

test('an unreadable one is an error with its place and nothing of the key', async () => {
  const folder = temporaryFolder()
  const sealed = String(privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' }))
  await writeFile(join(folder, 'a.key'), sealed)
  await expect(readPrivateKeyFile(folder, 'a', 'ES256')).rejects.toThrow('keys/a.key')
  const broken = '-----BEGIN PRIVATE KEY-----\nhidden\n-----END PRIVATE KEY-----'
  expect(() => readPrivateKey(broken, 'the secret a', 'ES256')).toThrow('the secret a')
  expect(() => readPrivateKey(broken, 'the secret a', 'ES256')).not.toThrow('hidden')
})
