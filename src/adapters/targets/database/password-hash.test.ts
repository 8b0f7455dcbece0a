import { performance } from 'node:perf_hooks'
import { expect, test } from 'vitest'
import { hashPassword, isPassword } from './password-hash.ts'

test('a hash is argon2id, salted, and matches only its own password', async () => {
  const [one, two] = await Promise.all([hashPassword('tr0ub4dor & 3'), hashPassword('tr0ub4dor & 3')])
  expect(one).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[\w+/]{22}\$[\w+/]{43}$/)
  expect(one).not.toBe(two)
  expect(await isPassword('tr0ub4dor & 3', one)).toBe(true)
  expect(await isPassword('tr0ub4dor & 4', one)).toBe(false)
  expect(await isPassword('', one)).toBe(false)
})

test('two encodings of the same word are the same password', async () => {
  const hash = await hashPassword('Zo\u00eb of Oz')
  expect(await isPassword('Zoe\u0308 of Oz', hash)).toBe(true)
})

test('a hash with another cost is verified with its own cost', async () => {
  // By the reference implementation: echo -n password | argon2 somesalt -id -t 2 -m 16 -p 1 -l 24
  const known = '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc'
  expect(await isPassword('password', known)).toBe(true)
  expect(await isPassword('passwort', known)).toBe(false)
})

test('an invalid hash, or one that would cost too much, matches nothing', async () => {
  const hash = await hashPassword('a password')
  for (const wrong of [
    '',
    'a password',
    hash.replace('argon2id', 'argon2i'),
    hash.replace('m=19456', 'm=9999999'),
    `${hash}x y`,
  ]) {
    expect(await isPassword('a password', wrong)).toBe(false)
  }
})

test('an unknown user takes as long as a known one', async () => {
  const hash = await hashPassword('a password')
  const time = async (stored: string | undefined) => {
    const start = performance.now()
    await isPassword('another', stored)
    return performance.now() - start
  }
  const [somebody, nobody]: [number[], number[]] = [[], []]
  for (let i = 0; i < 3; i++) {
    somebody.push(await time(hash))
    nobody.push(await time(undefined))
  }
  expect(Math.min(...nobody)).toBeGreaterThan(Math.min(...somebody) / 4)
}, 30_000)
