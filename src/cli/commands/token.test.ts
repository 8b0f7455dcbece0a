import { generateKeyPairSync } from 'node:crypto'
import { chmod, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { createKeySource } from '#keys/key-source.ts'
import { pinnedKeySet } from '#protocols/jwt/keys.ts'
import { publishedKey } from '#protocols/jwt/signing.ts'
import { createTokenVerifier } from '#protocols/jwt/token-verifier.ts'
import { tokenCommand } from './token.ts'

let data: string
beforeEach(async () => {
  data = await mkdtemp(join(tmpdir(), 'token-'))
})
afterEach(() => rm(data, { recursive: true }))

async function run(...args: string[]) {
  const out: string[] = []
  const err: string[] = []
  const code = await tokenCommand(args, { stdout: (line) => out.push(line), stderr: (line) => err.push(line) })
  return { code, out, err }
}

test('mints a token that the development issuer’s key verifies', async () => {
  const { code, out, err } = await run('mint', '--data', data, '--subject', 'alice')
  expect({ code, lines: out.length }).toEqual({ code: 0, lines: 1 })
  expect(err).toEqual([expect.stringContaining(`Created a signing key in ${data}.`)])
  expect((await run('mint', '--data', data, '--subject', 'again')).err).toEqual([])
  const [token = ''] = out
  const { publicKey } = await createKeySource({ configuration: data, data }).signingKey('development-issuer')
  const rules = {
    issuer: 'http://127.0.0.1:8080/dev-issuer',
    audiences: ['gatehouse'],
    allowNoIat: false,
    notBeforeMinutes: 0,
  }
  const { claims } = await createTokenVerifier(rules, pinnedKeySet(publicKey), systemClock).verify(token)
  expect(claims.sub).toBe('alice')
  expect((claims.exp ?? 0) - (claims.iat ?? 0)).toBe(3600)
  expect(decodeProtectedHeader(token)).toEqual({ alg: 'RS256', typ: 'JWT', kid: (await publishedKey(publicKey)).kid })
})

test('accepts issuer, audience, lifetime and claims', async () => {
  const { out } = await run(
    ...['mint', '--data', data, '--subject', 's', '--issuer', 'http://127.0.0.1/i', '--audience', 'a', '--ttl', '60'],
    ...['--claim', 'groups=x', '--claim', 'groups=y=z', '--claim', 'mail=a@example.com'],
  )
  const claims = decodeJwt(out[0] ?? '')
  expect(claims).toMatchObject({ iss: 'http://127.0.0.1/i', aud: 'a', groups: ['x', 'y=z'], mail: 'a@example.com' })
  expect((claims.exp ?? 0) - (claims.iat ?? 0)).toBe(60)
})

test.each([
  [[]],
  [['revoke', '--subject', 's']],
  [['mint']],
  [['mint', '--subject', '']],
  [['mint', '--subject', 's', '--ttl', '0']],
  [['mint', '--subject', 's', '--ttl', '-5']],
  [['mint', '--subject', 's', '--ttl', '1e3']],
  [['mint', '--subject', 's', '--claim', 'novalue']],
  [['mint', '--subject', 's', '--claim', '=x']],
  [['mint', '--subject', 's', '--claim', '__proto__=x']],
  [['mint', '--subject', 's', '--claim', 'exp=9999999999']],
  [['mint', '--subject', 's', '--wrong', 'x']],
  [['mint', 'twice', '--subject', 's']],
])('wrong usage %j exits with 2 and points to the help', async (args) => {
  const { code, out, err } = await run(...args)
  expect(code).toBe(2)
  expect(out).toEqual([])
  expect(err.join('\n')).toContain('Run "gatehouse token --help" for usage.')
})

test('--help prints the usage and succeeds', async () => {
  const { code, out } = await run('--help')
  expect(code).toBe(0)
  expect(out.join('\n')).toContain('Usage:\n  gatehouse token mint')
})

test('signs with the operator’s private key', async () => {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const file = join(data, 'idp.key')
  await writeFile(file, privateKey.export({ type: 'pkcs8', format: 'pem' }))
  const { code, out, err } = await run('mint', '--key-file', file, '--subject', 'idp', '--issuer', 'https://gw.example')
  expect({ code, err }).toEqual({ code: 0, err: [] })
  const rules = { issuer: 'https://gw.example', audiences: ['gatehouse'], allowNoIat: false, notBeforeMinutes: 0 }
  const { claims } = await createTokenVerifier(rules, pinnedKeySet(publicKey), systemClock).verify(out[0] ?? '')
  expect(claims.sub).toBe('idp')
})

test.each([
  ['ec', () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' })],
  [
    'short',
    () => generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey.export({ type: 'pkcs8', format: 'pem' }),
  ],
  ['garbage', () => 'no key'],
])("rejects a key file that can't sign: %s", async (_, content) => {
  const file = join(data, 'bad.key')
  await writeFile(file, content())
  const { code, out, err } = await run('mint', '--key-file', file, '--subject', 'idp')
  expect({ code, out }).toEqual({ code: 1, out: [] })
  expect(err[0]).toContain('bad.key')
})

test('closes a data folder that other users can enter before it creates a key there', async () => {
  await chmod(data, 0o777)
  expect((await run('mint', '--data', data, '--subject', 'alice')).code).toBe(0)
  expect((await stat(data)).mode & 0o777).toBe(0o700)
})
