import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import { silentLogger } from '#kernel/logger.ts'
import { loadDemoPasswords } from '#modules/directory-inserts/database/demo-passwords.ts'
import { temporaryFolder } from '#testing/databases.ts'

async function load(text: string, { any = false, failure = new GatewayError('NOT_FOUND', 'nobody') } = {}) {
  const file = join(temporaryFolder(), 'passwords.json')
  writeFileSync(file, text)
  const set: string[][] = []
  const people = {
    setPassword: async (login: string, password: string) => {
      if (login === 'ghost') throw failure
      set.push([login, password])
      return []
    },
  }
  await loadDemoPasswords(file, people, { any: async () => any }, silentLogger)
  return set
}

test('sets the passwords of those who are there, while nobody has one', async () => {
  const text = JSON.stringify({ ada: 'first-password', ghost: 'second-password' })
  expect(await load(text)).toEqual([['ada', 'first-password']])
  expect(await load(text, { any: true })).toEqual([])
})

test('a database that does not answer does not keep the gateway from starting; other failures do', async () => {
  const text = JSON.stringify({ ghost: 'a-password' })
  expect(await load(text, { failure: new GatewayError('TARGET_UNREACHABLE', 'down') })).toEqual([])
  await expect(load(text, { failure: new GatewayError('BAD_REQUEST', 'too short') })).rejects.toThrow('too short')
})

test.each(['{', '[]', '{"ada": 1}', '{"ada": {"password": "hush-hush"}}'])(
  '%s is refused without its values',
  async (text) => {
    const refused = await load(text).catch((error: Error) => error.message)
    expect(refused).toContain('demo passwords')
    expect(refused).not.toContain('hush')
  },
)
