import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { testServerCertificate } from '#testing/gateway/test-certificates.ts'
import { createKeySource } from './key-source.ts'

const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const pem = (key: KeyObject): string =>
  String(key.export({ type: key.type === 'private' ? 'pkcs8' : 'spki', format: 'pem' }))

let configuration: string
let data: string

beforeEach(async () => {
  configuration = await mkdtemp(join(tmpdir(), 'configuration-'))
  data = join(await mkdtemp(join(tmpdir(), 'data-')), 'gatehouse')
  await mkdir(join(configuration, 'keys'))
})
afterEach(async () => {
  await rm(configuration, { recursive: true })
  await rm(join(data, '..'), { recursive: true })
})

const write = (name: string, text: string) => writeFile(join(configuration, 'keys', name), text)
const keys = () => createKeySource({ configuration, data })

describe('a public key', () => {
  test('is read from a public key, a private key or a certificate', async () => {
    await write('a.pem', pem(publicKey))
    await write('b.key', pem(privateKey))
    await write('c.crt', testServerCertificate)
    for (const name of ['a', 'b']) {
      const key = await keys().publicKey(name)
      expect(key?.type).toBe('public')
      expect(key?.equals(publicKey)).toBe(true)
    }
    expect((await keys().publicKey('c'))?.asymmetricKeyType).toBe('ec')
  })

  test('that does not exist is undefined, and no name leaves the folder', async () => {
    await writeFile(join(configuration, 'outside.pem'), pem(publicKey))
    for (const name of ['none', '../outside', '..', '', '.', 'a/../../outside', 'outside\u0000', '/etc/passwd']) {
      expect(await keys().publicKey(name)).toBeUndefined()
    }
  })

  test('comes from a secret if no file has that name', async () => {
    await write('both.pem', pem(publicKey))
    const secrets = new Map([
      ['both', testServerCertificate],
      ['cluster', testServerCertificate],
      ['broken', 'no key'],
    ])
    const source = createKeySource({ configuration, data, certificate: (name) => secrets.get(name) })
    expect((await source.publicKey('both'))?.equals(publicKey)).toBe(true)
    expect((await source.publicKey('cluster'))?.asymmetricKeyType).toBe('ec')
    expect(await source.publicKey('none')).toBeUndefined()
    await expect(source.publicKey('broken')).rejects.toThrow('the secret broken')
  })

  test("that can't be read is an error with the file, not a missing key", async () => {
    await write('broken.pem', 'no key')
    await expect(keys().publicKey('broken')).rejects.toThrow(/keys\/broken\.pem/)
  })
})

describe('a signing key', () => {
  test('is created once, readable by its owner only', async () => {
    const made = await keys().signingKey('issuer')
    expect(made.privateKey.asymmetricKeyDetails?.modulusLength).toBe(2048)
    expect((await keys().signingKey('issuer')).privateKey.equals(made.privateKey)).toBe(true)
    const { mode } = await stat(join(data, 'keys', 'issuer.jwk'))
    expect(mode & 0o777).toBe(0o600)
    expect(await readdir(join(data, 'keys'))).toEqual(['issuer.jwk'])
  })

  test('is the same for concurrent callers', async () => {
    const made = await Promise.all(Array.from({ length: 6 }, () => keys().signingKey('issuer')))
    const [first] = made
    expect(made.every(({ privateKey: key }) => first?.privateKey.equals(key))).toBe(true)
    expect(await readdir(join(data, 'keys'))).toEqual(['issuer.jwk'])
  })

  test('with a damaged file is an error, and is not replaced', async () => {
    await mkdir(join(data, 'keys'), { recursive: true })
    await writeFile(join(data, 'keys', 'issuer.jwk'), '{}')
    await expect(keys().signingKey('issuer')).rejects.toThrow(/no private key/)
    await expect(keys().signingKey('../issuer')).rejects.toThrow(/cannot be the name/)
  })

  test('needs a data folder', async () => {
    const source = createKeySource({ configuration, data: undefined })
    await expect(source.signingKey('issuer')).rejects.toThrow(/--data/)
  })
})

describe('secret keys', () => {
  const bytes = (key: KeyObject | undefined) => key?.export().toString('hex')

  test('are created once per purpose, and are the same for all users of a folder', async () => {
    const [first, ...others] = await keys().secretKeys('links')
    expect(others).toEqual([])
    expect(first?.symmetricKeySize).toBe(32)
    expect(bytes((await keys().secretKeys('links'))[0])).toBe(bytes(first))
    expect(bytes((await keys().secretKeys('other'))[0])).not.toBe(bytes(first))
  })

  test('come from the environment if it has them, the newest first', async () => {
    const [one, two] = [1, 2].map((byte) => Buffer.alloc(32, byte).toString('base64'))
    const made = (text: string) =>
      createKeySource({ configuration, data, environment: { GATEHOUSE_SECRET_KEY: text } }).secretKeys('links')
    const [newest, older] = await made(`${two},${one}`)
    expect(bytes(older)).toBe(bytes((await made(`${one}`))[0]))
    expect(bytes(newest)).toBe(bytes((await made(`${two}`))[0]))
    await expect(made('short')).rejects.toThrow(/32 bytes/)
  })

  test('need a data folder', async () => {
    await expect(createKeySource({ configuration, data: undefined }).secretKeys('links')).rejects.toThrow(/--data/)
  })
})
