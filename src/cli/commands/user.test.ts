import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { AuditKey } from '#database/audit-seal.ts'
import { SecondFactors } from '#features/account/second-factors/second-factors.ts'
import { Attributes } from '#identity/attributes.ts'
import { entryIdentity } from '#identity/identity.ts'
import type { Awaitable } from '#kernel/awaitable.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { loadAuditKeys } from '#keys/audit-keys.ts'
import type { Session } from '#requests/sessions/session.ts'
import { openStorage, type Storage } from '#server/composition/stores.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { createUser } from '#testing/databases/directory-writes.ts'
import { fakeSecretBox } from '#testing/login/fake-login-services.ts'
import { subject } from '#testing/login/subjects.ts'
import { userCommand, userCommandReading } from './user.ts'

const insert = (name: string) => `apiVersion: openunison.tremolo.io/v1
kind: DirectoryInsert
metadata: { name: ${name} }
spec: { className: directory.Database, suffix: "ou=${name},o=Tremolo" }
`

function setUp(...inserts: string[]) {
  const folder = temporaryFolder()
  const config = join(folder, 'config')
  const data = join(folder, 'data')
  mkdirSync(config)
  writeFileSync(join(config, 'directory.yaml'), inserts.map(insert).join('---\n'))
  const run = async (password: string, ...args: string[]) => {
    const output: string[] = []
    const errors: string[] = []
    const io = { stdout: (line: string) => void output.push(line), stderr: (line: string) => void errors.push(line) }
    const input = Readable.from([Buffer.from(password)])
    const code = await userCommandReading(input)([...args, '--config', config, '--data', data], io)
    return { code, output, errors: errors.join('\n') }
  }
  const look = async <T>(work: (storage: Storage) => Awaitable<T>, auditKeys: readonly AuditKey[] = []): Promise<T> => {
    const storage = openStorage({ dataFolder: data, clock: systemClock, log: silentLogger, auditKeys })
    try {
      return await work(storage)
    } finally {
      await storage.close()
    }
  }
  return { run, look }
}

test('users are added, listed, get a new password and are removed, with audit entries that omit the password', async () => {
  const { run, look } = setUp('people')
  const add = [
    'add',
    'ada',
    '--attribute',
    'mail=ada@x.org',
    '--attribute',
    'mail=a=b',
    '--group',
    'admins',
    '--by',
    'me',
  ]
  expect(await run('correct horse\nand no more', ...add)).toEqual({
    code: 0,
    output: ['Added "ada" to the directory "people", in the group admins. The user can log in with this password.'],
    errors: '',
  })
  expect(await run('', 'add', 'bob\u001b[2J', '--no-password')).toMatchObject({
    code: 2,
    errors: expect.stringContaining('LOGIN must not have control, direction, invisible or unassigned characters'),
  })
  // Another version of the gateway accepted it.
  await look((storage) =>
    createUser(storage.userDirectory({ name: 'people' }), {
      userID: 'bob\u001b[2J',
      attributes: Attributes.from([]),
      groups: [],
    }),
  )
  expect((await run('', 'list')).output).toEqual([
    'ada  password  uid=ada,ou=people,o=Tremolo',
    expect.stringMatching(/^bob\ufffd\[2J {2}no password/),
  ])
  const session = (id: string): Omit<Session, 'owner'> => ({
    id,
    publicId: id,
    context: 'c',
    application: 'portal',
    userID: 'Ada',
    data: {},
    created: new Date(),
    touched: new Date(),
    idleSeconds: 600,
  })
  const owners = await look(async (storage) => {
    const people = storage.userDirectory({ name: 'people' })
    const [ada, bob] = await Promise.all(['ada', 'bob\u001b[2J'].map((login) => people.lookupUserByLogin(login)))
    const both = [ada, bob].map((user) => entryIdentity('people', user?.id ?? ''))
    await Promise.all(both.map((owner, i) => storage.sessions.create({ ...session(`${i}`), owner })))
    for (const [i, owner] of both.entries()) {
      const link = { id: `link ${i}`, form: 'portal', owner, data: {}, tokenHash: `token ${i}`, validMillis: 600_000 }
      await storage.passwordChanges.addLink(link, 3, [], [])
    }
    return both
  })
  expect(await run('another horse', 'passwd', 'ADA')).toMatchObject({
    code: 0,
    output: ['Set the password of "ADA". The user must log in again.'],
  })
  const left = await look(({ sessions }) =>
    Promise.all(owners.map(async (owner) => (await sessions.ofOwner(owner, new Date())).length)),
  )
  expect(left).toEqual([0, 1])
  // An earlier link would let its holder replace the password again; an earlier device is no longer known.
  const afterwards = await look(({ passwordChanges }) =>
    Promise.all(
      owners.map(async (owner, i) => ({
        link: (await passwordChanges.findLink('portal', `token ${i}`))?.id,
        isChanged: (await passwordChanges.changedAt([owner])) !== undefined,
      })),
    ),
  )
  expect(afterwards).toEqual([
    { link: undefined, isChanged: true },
    { link: 'link 1', isChanged: false },
  ])
  const ended = await look(({ audit }) => audit.list({ subject: 'Ada', limit: 50 }))
  expect(ended.rows.filter(({ kind }) => kind === 'session')).toMatchObject([
    { action: 'delete', value: '0', workflow: { name: 'gatehouse user passwd' } },
  ])
  expect(await look((storage) => storage.userDirectory({ name: 'people' }).lookupUserByLogin('ada'))).toMatchObject({
    userID: 'ada',
    groups: ['admins'],
  })
  expect(await run('', 'remove', 'ada')).toMatchObject({
    code: 0,
    output: ['Removed "ada" and ended the user\'s sessions.'],
  })
  expect(await run('', 'remove', 'ada')).toMatchObject({
    code: 1,
    errors: expect.stringContaining('there is no user with the login'),
  })
  const { rows } = await look(({ audit }) => audit.list({ subject: 'ada', limit: 50 }))
  expect(JSON.stringify(rows)).not.toMatch(/horse|argon2/)
  expect(
    rows.filter(({ kind }) => kind !== 'session').map(({ action, attribute }) => `${action} ${attribute}`),
  ).toEqual([
    'delete userID',
    'replace userPassword',
    'add userPassword',
    'add groups',
    'add name',
    'add mail',
    'add mail',
    'add userID',
  ])
  expect(rows.at(-1)).toMatchObject({ requestor: 'me', target: 'people', workflow: { name: 'gatehouse user add' } })
})

test('a failed add reports the problem and adds no user', async () => {
  const { run } = setUp('people')
  expect(await run('', 'list')).toMatchObject({ code: 1, errors: expect.stringContaining('no database') })
  expect(await run('short', 'add', 'ada')).toMatchObject({ code: 1, errors: expect.stringContaining('8 characters') })
  expect(await run('', 'add', 'ada')).toMatchObject({ code: 1, errors: expect.stringContaining('standard input') })
  expect(await run('x'.repeat(5000), 'add', 'ada')).toMatchObject({
    code: 1,
    errors: expect.stringContaining('too long'),
  })
  expect(await run('', 'add', 'zoe', '--no-password')).toMatchObject({ code: 0 })
  expect(await run('long enough', 'passwd', 'ada')).toMatchObject({
    code: 1,
    errors: expect.stringContaining('there is no user with the login'),
  })
  expect((await run('', 'list')).output).toHaveLength(1)
  expect(await run('long enough', 'add', 'ada')).toMatchObject({ code: 0 })
  expect(await run('long enough', 'add', 'Ada')).toMatchObject({ code: 1, errors: expect.stringContaining('already') })
})

test('the command that creates the database seals its audit with the key of the gateway, as the gateway would', async () => {
  const { run, look } = setUp('people')
  vi.stubEnv('GATEHOUSE_AUDIT_KEY', Buffer.alloc(32, 7).toString('base64'))
  onTestFinished(() => void vi.unstubAllEnvs())
  expect(await run('', 'add', 'ada', '--no-password')).toMatchObject({ code: 0 })
  const auditKeys = await loadAuditKeys({ environment: process.env, dataFolder: 'unused' }, 'command')
  const check = () => look(({ audit }) => audit.verify(), auditKeys)
  // Not "sealed as they were": nothing was written before the seal.
  expect(await check()).toMatchObject({ checked: 1, authenticated: true, problems: [], sealed: [] })
  expect(await run('', 'add', 'bob', '--no-password')).toMatchObject({ code: 0 })
  expect(await look(({ audit }) => audit.authenticate(), auditKeys)).toEqual({ sealed: false, records: 0, forged: [] })
  expect(await check()).toMatchObject({ checked: 2, authenticated: true, problems: [], sealed: [] })
})

test('without the key of the gateway, a new database is left for the gateway to seal', async () => {
  const { run, look } = setUp('people')
  expect(await run('', 'add', 'ada', '--no-password')).toMatchObject({ code: 0 })
  expect(await look(({ audit }) => audit.verify())).toMatchObject({ checked: 1, authenticated: false, problems: [] })
})

test('wrong usage, and a missing choice', async () => {
  const two = setUp('people', 'guests')
  expect(await two.run('long enough', 'add', 'ada')).toMatchObject({
    code: 2,
    errors: expect.stringContaining('guests or people'),
  })
  expect(await two.run('long enough', 'add', 'ada', '--insert', 'guests')).toMatchObject({ code: 0 })
  expect((await two.run('', 'list', '--insert', 'people')).output).toEqual([])
  expect(await two.run('', 'list', '--insert', 'other')).toMatchObject({
    code: 1,
    errors: expect.stringContaining('"other"'),
  })
  for (const args of [
    ['add'],
    ['rename', 'ada'],
    ['add', 'ada', '--attribute', 'mail'],
    ['add', 'ada', '--password', 'x'],
  ]) {
    expect(await two.run('long enough', ...args)).toMatchObject({ code: 2 })
  }
  expect(await setUp().run('', 'list')).toMatchObject({
    code: 1,
    errors: expect.stringContaining('directory.Database'),
  })
})

test('reset-factors removes the second factors of one user and audits it', async () => {
  const url = `sqlite:${join(temporaryFolder(), 'test.db')}`
  const secrets = fakeSecretBox('second factor')
  const people = [subject('uid=ada,ou=staff,o=Tremolo'), subject('uid=grace,ou=staff,o=Tremolo')]
  const look = async <T>(
    work: (factors: SecondFactors, storage: ReturnType<typeof openStorage>) => Promise<T>,
  ): Promise<T> => {
    const storage = openStorage({ url, clock: systemClock, log: silentLogger })
    await storage.ready()
    try {
      return await work(new SecondFactors({ store: storage.secondFactors, secrets, clock: systemClock }), storage)
    } finally {
      await storage.close()
    }
  }
  await look(async (factors) => {
    for (const person of people) {
      const factor = { id: person.uid, kind: 'totp', name: 'Phone', secret: {}, counter: 0 } as const
      await factors.add(person, factor, { requestId: 'r' })
    }
  })
  const said: string[] = []
  const io = { stdout: (line: string) => said.push(line), stderr: (line: string) => said.push(line) }
  const reset = (dn: string) => userCommand(['reset-factors', dn, '--database', url, '--by', 'root'], io)
  expect(await reset('UID=Ada,ou=Staff, o=Tremolo')).toBe(0)
  expect(await reset('uid=nobody,o=Tremolo')).toBe(1)
  expect(await reset('uid=ada,ou=staff,o=Tremolo')).toBe(1)
  expect(await reset('ada')).toBe(2)
  const none = (dn: string): string =>
    `gatehouse user: no user with second factors has the DN "${dn}", so nothing was removed: the user has none, or had another DN at the last login with one`
  expect(said.slice(0, 5)).toEqual([
    'Removed 1 second factor of "UID=Ada,ou=Staff,o=Tremolo", and the recovery codes. Sessions continue.',
    'Where the chain has "enrol", the next login sets up a new one: anyone with the password can do that first.',
    none('uid=nobody,o=Tremolo'),
    none('uid=ada,ou=staff,o=Tremolo'),
    expect.stringMatching(/^gatehouse user: DN must be such as uid=ada,ou=people,o=Tremolo: .*character 4/),
  ])
  await look(async (factors, { audit }) => {
    expect((await Promise.all(people.map((person) => factors.of(person)))).map(({ length }) => length)).toEqual([0, 1])
    const [row] = (await audit.list({ limit: 5 })).rows.filter(({ action }) => action === 'delete')
    expect(row).toMatchObject({ requestor: 'root', subject: 'Ada', action: 'delete', attribute: 'second factor' })
  })
})
