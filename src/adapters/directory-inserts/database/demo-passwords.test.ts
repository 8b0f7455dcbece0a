import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Passwords } from '#adapters/targets/database/password-hash.ts'
import { Dn } from '#identity/dn.ts'
import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { silentLogger } from '#kernel/logger.ts'
import { openStorage } from '#server/composition/stores.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { leastCost } from '#testing/login/least-cost.ts'
import { DatabaseInsert, loadDemoPasswords } from './database.ts'

async function load(
  text: string,
  { any = false, failure = new GatewayError('NOT_FOUND', 'nobody'), loopbackOnly = true } = {},
) {
  const file = join(temporaryFolder(), 'passwords.json')
  writeFileSync(file, text)
  const set: string[][] = []
  const people = {
    setPassword: async (login: string, password: string) => {
      if (login === 'ghost') throw failure
      set.push([login, password])
    },
  }
  await loadDemoPasswords(file, people, { any: async () => any }, { log: silentLogger, loopbackOnly })
  return set
}

test('sets the passwords of existing users that have none', async () => {
  const text = JSON.stringify({ ada: 'first-password', ghost: 'second-password' })
  expect(await load(text)).toEqual([['ada', 'first-password']])
  expect(await load(text, { any: true })).toEqual([])
  expect(await load(text, { loopbackOnly: false })).toEqual([])
})

test('a database that does not answer does not prevent the start; other failures do', async () => {
  const text = JSON.stringify({ ghost: 'a-password' })
  expect(await load(text, { failure: new GatewayError('TARGET_UNREACHABLE', 'down') })).toEqual([])
  await expect(load(text, { failure: new GatewayError('BAD_REQUEST', 'too short') })).rejects.toThrow('too short')
})

test.each(['{', '[]', '{"ada": 1}', '{"ada": {"password": "hush-hush"}}'])(
  '%s is rejected without showing its values',
  async (text) => {
    const refused = await load(text).catch((error: Error) => error.message)
    expect(refused).toContain('demo passwords')
    expect(refused).not.toContain('hush')
  },
)

/** Opens the embedded directory with two users like a gateway, several times on the same database. */
function gateway(url: string) {
  const file = join(temporaryFolder(), 'passwords.json')
  writeFileSync(file, JSON.stringify({ ada: 'lovelace-1815', grace: 'hopper-1906' }))
  const storage = openStorage({ url, clock: systemClock, log: silentLogger })
  const people = Dn.parse('ou=people,o=Tremolo')
  return {
    async open({ demo = true, loopbackOnly = true } = {}) {
      const passwords = new Passwords(storage.userDirectory({ name: 'people/passwords' }), leastCost)
      const layout = { people, groups: people.child('ou', 'groups'), userAttribute: 'uid', groupAttribute: 'cn' }
      const insert = new DatabaseInsert(storage.userDirectory({ name: 'people' }), passwords, layout)
      if (demo) insert.demo = await loadDemoPasswords(file, insert, passwords, { log: silentLogger, loopbackOnly })
      const bind = (login: string, password: string, caller?: { local: boolean }) =>
        insert.bind(people.child('uid', login), password, caller)
      return { insert, bind }
    },
    async add(insert: DatabaseInsert, login: string) {
      await insert.addPerson({ login, attributes: new Map(), groups: [], password: undefined })
    },
    close: () => storage.close(),
  }
}

test('a warning names the file, its mode, the logins and the command that replaces the passwords', async () => {
  const folder = temporaryFolder()
  const file = join(folder, 'passwords.json')
  writeFileSync(file, JSON.stringify({ ada: 'lovelace-1815' }), { mode: 0o640 })
  const storage = openStorage({ url: `sqlite:${join(folder, 'people.db')}`, clock: systemClock, log: silentLogger })
  onTestFinished(() => storage.close())
  const people = storage.userDirectory({ name: 'people' })
  const passwords = new Passwords(storage.userDirectory({ name: 'people/passwords' }), leastCost)
  const dn = Dn.parse('ou=people,o=Tremolo')
  const layout = { people: dn, groups: dn.child('ou', 'groups'), userAttribute: 'uid', groupAttribute: 'cn' }
  const insert = new DatabaseInsert(people, passwords, layout)
  const lines: [string, unknown][] = []
  const log = { ...silentLogger, warn: (message: string, fields: unknown) => void lines.push([message, fields]) }
  await loadDemoPasswords(file, insert, passwords, { log, loopbackOnly: true })
  expect(lines).toEqual([
    [
      expect.stringMatching(/anyone who can read the file can sign in.*Run "gatehouse user passwd LOGIN"/),
      { file, mode: '0640', logins: ['ada'] },
    ],
  ])
})

test('demo passwords work on a loopback listener, for callers on this machine, while they are configured', async () => {
  const { open, add, close } = gateway(`sqlite:${join(temporaryFolder(), 'people.db')}`)
  const { insert } = await open({ demo: false })
  for (const login of ['Ada', 'grace']) await add(insert, login)

  const local = await open()
  expect(await local.bind('ada', 'lovelace-1815', { local: true })).toBe(true)
  expect(await local.bind('ada', 'lovelace-1815', { local: false })).toBe(false)
  expect(await local.bind('ada', 'lovelace-1816', { local: true })).toBe(false)

  // The database has them now. Then a gateway that others can reach opens it, or one without the parameter.
  for (const later of [await open({ loopbackOnly: false }), await open({ demo: false })]) {
    expect(await later.bind('ada', 'lovelace-1815', { local: true })).toBe(false)
  }

  // A password that a user chose isn't a demo password, unless it equals the one in the file.
  await local.insert.setPassword('grace', 'a password of her own')
  const reachable = await open({ loopbackOnly: false })
  expect(await reachable.bind('grace', 'a password of her own', { local: false })).toBe(true)
  await local.insert.setPassword('grace', 'hopper-1906')
  expect(await reachable.bind('grace', 'hopper-1906', { local: false })).toBe(false)
  await close()
})
