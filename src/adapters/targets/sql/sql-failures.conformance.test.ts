import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Client } from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import { syncOptions, targetFixture, userOf } from '#sdk/conformance/target-fixture.ts'
import { hasGroups, hasLookups, hasPasswords, type Target } from '#sdk/target/target.ts'
import { onEachEmptyDatabase, temporaryFolder } from '#testing/databases/databases.ts'
import { startPostgres } from '#testing/databases/embedded-postgres.ts'
import { freshSchema, postgresUrl } from '#testing/databases/postgres.ts'
import {
  applicationParams,
  applicationStatements,
  makeApplication,
  openApplication,
  openTarget,
  runOn,
} from '#testing/databases/sql-schema.ts'
import type { ParamValues } from '#testing/modules/fake-parse.ts'

const names = { attributes: ['mail', 'givenName', 'phone'], groups: ['group1', 'group2', 'group3'] } as const
const requestFor = (target: Target) => targetFixture(target, names).request

onEachEmptyDatabase('a read-only SQL target', (freshUrl) => {
  test.each([
    ['tables', applicationParams],
    ['statements', applicationStatements],
  ])('fails at every change and reads as usual: %s', async (_kind, params) => {
    const url = await freshUrl()
    await makeApplication(url)
    const target = await openTarget(url, params)
    const ada = userOf('ada', { givenName: ['Ada'] }, ['group1'])
    await target.createUser(ada, ['givenName'], requestFor(target))
    await target.close?.()
    const readOnly = await openTarget(url, { ...params, readOnly: 'true' })
    onTestFinished(async () => {
      await readOnly.close?.()
    })
    const request = requestFor(readOnly)
    const refused = { code: 'TARGET_FAILED', message: expect.stringContaining('is read-only') }
    await expect(readOnly.createUser(userOf('eve'), [], request)).rejects.toMatchObject(refused)
    const renamed = userOf('ada', { givenName: ['Eve'] }, ['group1'])
    await expect(readOnly.syncUser(renamed, syncOptions(['givenName']), request)).rejects.toMatchObject(refused)
    await expect(readOnly.deleteUser(ada, request)).rejects.toMatchObject(refused)
    await readOnly.syncUser(ada, syncOptions(['givenName']), request)
    await readOnly.deleteUser(userOf('nobody'), request)
    expect(hasGroups(readOnly) || hasPasswords(readOnly)).toBe(false)
    const found = await readOnly.findUser('ada', ['givenName'], request)
    expect([found?.attributes.first('givenName'), found?.groups]).toEqual(['Ada', ['group1']])
    expect(await readOnly.findUser('eve', [], request)).toBeUndefined()
  })
})

onEachEmptyDatabase('the SQL target with problems in its configuration and schema', (freshUrl) => {
  test.each<[ParamValues, RegExp]>([
    [{ userTable: 'Peple' }, /there is no table "Peple"/],
    [{ userName: 'logn' }, /table "People" has no column "logn" \(did you mean "login"\?\)/],
    [{ 'column.phone': 'phone"; drop table crews; --' }, /is not a column's name/],
    [{ 'column.phone': 'fone' }, /table "People" has no column "fone"/],
    [
      { 'values.mail': 'addresses(person, adress)' },
      /table "addresses" has no column "adress" \(did you mean "address"\?\)/,
    ],
    [{ 'values.mail': 'addresses(person, address, kind)' }, /column "kind" of table "addresses" cannot number values/],
    [{ groupLinkTableName: 'crew_peoples' }, /there is no table "crew_peoples"/],
    [{ 'groupColumn.description': 'abut' }, /table "crews" has no column "abut"/],
    [{ userVersion: 'active' }, /column "active" of table "People" cannot hold versions/],
  ])('%j is rejected by name', async (params, problem) => {
    const url = await freshUrl()
    await makeApplication(url)
    await expect(openTarget(url, { ...applicationParams, ...params })).rejects.toThrow(problem)
    expect(await runOn(url, 'select title from crews')).toHaveLength(3)
  })

  test('an invalid statement is rejected by name', async () => {
    const url = await freshUrl()
    await makeApplication(url)
    const params = { ...applicationStatements, 'statement.deleteUser': 'delete from nobody where login = :userID' }
    await expect(openTarget(url, params)).rejects.toThrow(/statement deleteUser is not understood: .*nobody/)
  })

  test('values that a column cannot store are rejected by name, and nothing is written', async () => {
    const target = await openApplication(await freshUrl())
    const request = requestFor(target)
    const attributes = [...names.attributes, 'badge', 'active', 'hired', 'shoeSize']
    const wrong: [Record<string, string[]>, RegExp][] = [
      [{ badge: ['12x'] }, /"badge": column "badge" \(integer\) cannot hold/],
      [{ badge: ['007'] }, /"badge"/],
      [{ badge: ['1', '2'] }, /"badge" can have one value only/],
      [{ active: ['yes'] }, /column "active" \(boolean\)/],
      [{ hired: ['2026-02-30T00:00:00Z'] }, /column "hired"/],
      [{ phone: ['9'.repeat(100_001)] }, /column "phone" .*at most 100000 characters/],
      [{ shoeSize: ['46'] }, /"shoeSize" cannot be stored: it has no column/],
    ]
    for (const [values, problem] of wrong) {
      const attempt = target.createUser(userOf('ada', values), attributes, request)
      await expect(attempt).rejects.toMatchObject({ code: 'BAD_REQUEST', message: expect.stringMatching(problem) })
      await expect(attempt).rejects.toThrow(/target "crm"/)
    }
    await expect(target.createUser(userOf('ada', {}, ['nowhere']), attributes, request)).rejects.toMatchObject({
      code: 'BAD_REQUEST',
      message: expect.stringMatching(/a group that is not there: "nowhere"/),
    })
    expect(await target.findUser('ada', [], request)).toBeUndefined()
  })

  test('typed columns are text both ways, and another form of the same value is not a change', async () => {
    const target = await openApplication(await freshUrl())
    const { request, changes } = targetFixture(target, names)
    const attributes = ['badge', 'active', 'hired']
    await target.createUser(
      userOf('ada', { badge: ['-12'], active: ['False'], hired: ['2026-03-04T05:06:07.250+02:00'] }),
      attributes,
      request,
    )
    const stored = await target.findUser('ada', attributes, request)
    const expected = { badge: ['-12'], active: ['false'], hired: ['2026-03-04T03:06:07.25Z'] }
    expect(stored?.attributes.toObject()).toEqual(expected)
    changes.length = 0
    const same = { badge: ['-12'], active: ['FALSE'], hired: ['2026-03-04T03:06:07.25Z'] }
    await target.syncUser(userOf('ada', same), syncOptions(attributes), request)
    expect(changes).toEqual([])
    const cleared = target.syncUser(userOf('ada', { badge: ['1'] }), syncOptions(attributes), request)
    await expect(cleared).rejects.toMatchObject({
      code: 'BAD_REQUEST',
      message: expect.stringMatching(/"active" must have/),
    })
    expect((await target.findUser('ada', attributes, request))?.attributes.toObject()).toEqual(expected)
  })

  test("another user's unique value is a conflict, and a partly failed change is undone as a whole", async () => {
    const url = await freshUrl()
    const target = await openApplication(url)
    const { request, changes } = targetFixture(target, names)
    await runOn(url, 'create unique index one_phone on "People" (phone)')
    await target.createUser(userOf('ada', { phone: ['1'] }), names.attributes, request)
    await target.createUser(userOf('bob', { phone: ['2'], mail: ['b@x.test'] }), names.attributes, request)
    changes.length = 0
    await expect(target.createUser(userOf('cyd', { phone: ['1'] }), names.attributes, request)).rejects.toMatchObject({
      code: 'CONFLICT',
    })
    const both = userOf('bob', { phone: ['1'], mail: ['c@x.test'] }, ['group1'])
    await expect(target.syncUser(both, syncOptions(names.attributes), request)).rejects.toMatchObject({
      code: 'CONFLICT',
    })
    const lost = userOf('bob', { phone: ['3'], mail: ['c@x.test'] }, ['group1', 'nowhere'])
    await expect(target.syncUser(lost, syncOptions(names.attributes), request)).rejects.toMatchObject({
      code: 'BAD_REQUEST',
    })
    const bob = await target.findUser('bob', names.attributes, request)
    expect([bob?.attributes.toObject(), bob?.groups]).toEqual([{ mail: ['b@x.test'], phone: ['2'] }, []])
    expect(changes).toEqual([])
  })

  test('a login in another letter case is found if only one matches, and written in its own spelling', async () => {
    const url = await freshUrl()
    const target = await openApplication(url)
    if (!hasLookups(target)) throw new Error('no look-ups')
    const { request } = targetFixture(target, names)
    for (const login of ['Ada', 'bob', 'Åsa']) await target.createUser(userOf(login, {}), [], request)
    await runOn(url, `insert into "People" (login) values ('BOB')`)
    const logins = ['ada', 'bob', 'Bob', 'åSA', 'ÅSA', 'a_a', '%', '', 'ad\0a', "' or 1=1"]
    const found = await Promise.all(logins.map(async (login) => (await target.lookupUserByLogin(login))?.userID))
    expect(found).toEqual(['Ada', 'bob', undefined, 'Åsa', 'Åsa', ...Array(5)])
    expect(await target.findUser('ada', [], request)).toBeUndefined()
  })

  test('other columns of a row stay, and a new order is written', async () => {
    const url = await freshUrl()
    const target = await openApplication(url)
    const { request, changes } = targetFixture(target, names)
    await target.createUser(userOf('ada', { mail: ['a', 'b'] }), ['mail'], request)
    await runOn(url, "update addresses set kind = 'home' where address = 'a'")
    await target.syncUser(userOf('ada', { mail: ['a', 'c'] }), syncOptions(['mail']), request)
    expect(await runOn(url, 'select address, kind from addresses order by rank')).toMatchObject([
      { address: 'a', kind: 'home' },
      { address: 'c', kind: 'work' },
    ])
    changes.length = 0
    await target.syncUser(userOf('ada', { mail: ['c', 'a'] }), syncOptions(['mail']), request)
    expect((await target.findUser('ada', ['mail'], request))?.attributes.values('mail')).toEqual(['c', 'a'])
    expect(changes).toEqual([{ subject: 'attribute', action: 'replace', attribute: 'mail', value: 'c' }])
  })

  test('a password is stored as its hash, and not for a missing user', async () => {
    for (const params of [applicationParams, applicationStatements]) {
      const url = await freshUrl()
      await makeApplication(url)
      const target = await openTarget(url, params)
      onTestFinished(async () => target.close?.())
      const request = requestFor(target)
      if (!hasPasswords(target)) throw new Error('no passwords')
      await target.createUser(userOf('ada'), [], request)
      await target.setUserPassword(userOf('ada'), 'correct horse', request)
      const [row] = await runOn(url, 'select secret_hash from "People"')
      expect(row?.['secret_hash']).toMatch(/^\$scrypt\$ln=15,r=8,p=1\$[\w+/]{22}\$[\w+/]{43}$/)
      await expect(target.setUserPassword(userOf('bob'), 'x', request)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    }
  })

  test('a group that was renamed or deleted meanwhile is not joined', async () => {
    const target = await openApplication(await freshUrl())
    if (!hasLookups(target) || !hasGroups(target)) throw new Error('no groups')
    const request = requestFor(target)
    await target.createUser(userOf('ada'), [], request)
    const group = await target.lookupGroupByName('group1')
    const join = (name: string) =>
      target.syncUser(
        userOf('ada', {}, [name]),
        syncOptions([], { expectedGroup: { name: 'group1', id: group?.id ?? '' } }),
        request,
      )
    await target.updateGroup('group1', { newName: 'other' }, request)
    await expect(join('other')).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
    await target.updateGroup('other', { newName: 'group1' }, request)
    await join('group1')
    expect((await target.findUser('ada', [], request))?.groups).toEqual(['group1'])
  })

  test('without configured columns, every column is an attribute with its name, and the login is one too', async () => {
    const url = await freshUrl()
    await makeApplication(url)
    const target = await openTarget(url, { userTable: 'People', userName: 'login', userPrimaryKey: 'person_id' })
    onTestFinished(async () => target.close?.())
    const { request, changes } = targetFixture(target, names)
    const listed = ['login', 'phone', 'given name']
    await target.createUser(userOf('ada', { login: ['ada'], phone: ['1'], 'given name': ['Ada'] }), listed, request)
    expect(changes.map(({ attribute }) => attribute)).toEqual(['userID', 'phone', 'given name'])
    const other = target.syncUser(userOf('ada', { login: ['eve'] }), syncOptions(['login']), request)
    await expect(other).rejects.toMatchObject({
      code: 'BAD_REQUEST',
      publicText: '"login" is the login, and differs from it.',
    })
    changes.length = 0
    await target.syncUser(userOf('ada', { login: ['eve'] }), syncOptions(['login'], { newUserID: 'eve' }), request)
    expect(changes).toEqual([{ subject: 'entry', action: 'replace', attribute: 'userID', value: 'eve' }])
    const eve = await target.findUser('eve', listed, request)
    expect(eve?.attributes.toObject()).toEqual({ login: ['eve'], phone: ['1'], 'given name': ['Ada'] })
    expect(hasGroups(target)).toBe(false)
    await expect(target.createUser(userOf('bob', {}, ['group1']), [], request)).rejects.toMatchObject({
      code: 'BAD_REQUEST',
    })
  })

  test('a filter that only memory can evaluate is bounded', async () => {
    const target = await openApplication(await freshUrl(), { searchLimit: '2' })
    if (!hasLookups(target)) throw new Error('no look-ups')
    const request = requestFor(target)
    for (const login of ['a', 'b', 'c']) await target.createUser(userOf(login, { phone: [login] }), ['phone'], request)
    const filter = { kind: 'greater', attribute: 'phone', value: 'a' } as const
    await expect(target.searchUsers({ filter, offset: 0, limit: 10 })).rejects.toMatchObject({
      code: 'BAD_REQUEST',
      keyword: 'tooMany',
    })
    const narrowed = { kind: 'and', filters: [filter, { kind: 'equal', attribute: 'userID', value: 'B' }] } as const
    const page = await target.searchUsers({ filter: narrowed, offset: 0, limit: 10 })
    expect(page.items.map(({ userID }) => userID)).toEqual(['b'])
  })
})

test('a missing SQLite file is not created, and is used once it exists', async () => {
  const file = join(temporaryFolder(), 'late.db')
  const target = await openTarget(`sqlite:${file}`, applicationParams)
  const request = requestFor(target)
  await expect(target.findUser('ada', [], request)).rejects.toMatchObject({
    code: 'TARGET_UNREACHABLE',
    retryAfter: 30,
  })
  expect(existsSync(file)).toBe(false)
  await makeApplication(`sqlite:${file}`)
  expect(await target.findUser('ada', [], request)).toBeUndefined()
  await target.close?.()
  await expect(target.findUser('ada', [], request)).rejects.toMatchObject({ code: 'SHUTTING_DOWN' })
})

describe.skipIf(postgresUrl() === '')('the SQL target with a failing PostgreSQL', () => {
  test('an unreachable server: the target is created, and each call reports it', async () => {
    const target = await openTarget('postgres://u:hunter2@127.0.0.1:1/none', {
      ...applicationParams,
      timeoutMillis: '500',
    })
    const failure = await Promise.resolve(target.findUser('ada', [], requestFor(target))).catch(
      (error: unknown) => error,
    )
    expect(failure).toMatchObject({ code: 'TARGET_UNREACHABLE', retryAfter: 5 })
    expect(JSON.stringify(failure, Object.getOwnPropertyNames(failure))).not.toContain('hunter2')
    await target.close?.()
  })

  test('read-only, locked, and a wrong password', async () => {
    const url = await freshSchema()
    await makeApplication(url)
    const readOnly = new URL(url)
    const options = readOnly.searchParams.get('options')
    readOnly.searchParams.set('options', `${options} -c default_transaction_read_only=on`)
    const reader = await openTarget(readOnly.toString(), applicationParams)
    const request = requestFor(reader)
    await expect(reader.createUser(userOf('ada'), [], request)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
    await reader.close?.()

    const target = await openTarget(url, { ...applicationParams, timeoutMillis: '2000' })
    await target.createUser(userOf('ada'), [], request)
    const locker = new Client({ connectionString: url })
    await locker.connect()
    onTestFinished(() => locker.end())
    await locker.query('begin; lock table "People" in access exclusive mode')
    const waiting = target.syncUser(userOf('ada', { phone: ['1'] }), syncOptions(['phone']), request)
    await expect(waiting).rejects.toMatchObject({
      code: 'TARGET_TIMEOUT',
      message: expect.stringMatching(/target "crm"/),
    })
    await locker.query('commit')
    await target.syncUser(userOf('ada', { phone: ['1'] }), syncOptions(['phone']), request)
    await target.close?.()

    const stranger = await openTarget(url, { ...applicationParams, user: 'nobody', password: 'hunter2' })
    await expect(stranger.findUser('ada', [], request)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
    await stranger.close?.()
  })

  test('killed and restarted under load: it recovers automatically, and no acknowledged change is lost', async () => {
    const server = await startPostgres({ durable: true })
    onTestFinished(() => server.stop())
    await makeApplication(server.url)
    const target = await openTarget(server.url, { ...applicationParams, timeoutMillis: '20000' })
    const request = requestFor(target)
    const acknowledged = new Map<string, string>()
    const failures = new Set<string>()
    let answered = 0
    let ended = false
    const worker = async (n: number): Promise<void> => {
      for (let i = 0; !ended; i++) {
        const login = `user${n}-${i % 20}`
        const phone = `${i}`
        const user = userOf(login, { phone: [phone], mail: [phone] }, ['group1'])
        try {
          if (i < 20) await target.createUser(user, names.attributes, request)
          else await target.syncUser(user, syncOptions(names.attributes), request)
          acknowledged.set(login, phone)
          answered++
        } catch (error) {
          failures.add(error instanceof GatewayError ? error.code : String(error))
          // The outcome is unknown, as for a call that the engine repeats.
          acknowledged.delete(login)
          if (i < 20) i--
          await delay(50)
        }
      }
    }
    const load = Promise.all(Array.from({ length: 6 }, (_, n) => worker(n)))
    await expect.poll(() => answered).toBeGreaterThan(10)
    await server.restart()
    const before = answered
    await expect.poll(() => answered - before, { timeout: 60_000 }).toBeGreaterThan(50)
    ended = true
    await load
    expect([...failures]).toEqual(['TARGET_UNREACHABLE'])
    for (const [login, phone] of acknowledged) {
      const found = await target.findUser(login, names.attributes, request)
      expect([login, found?.attributes.first('phone'), found?.attributes.values('mail'), found?.groups]).toEqual([
        login,
        phone,
        [phone],
        ['group1'],
      ])
    }
    await target.close?.()
  })
})
