import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { onEachEmptyDatabase } from '#testing/databases/databases.ts'
import { freshSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { openTarget, runOn } from '#testing/databases/sql-schema.ts'
import { addEntry, asAdmin, newBranch, openLdap } from '#testing/ldap/ldap-target.ts'
import { sharedSlapd } from '#testing/ldap/slapd.ts'
import { openGatewayOn } from '#testing/scim/gateway-on-target.ts'
import { builtInParams } from '#testing/scim/scim-stack.ts'

const nasty = 'no \u001b[31m \u0007\u202e <b>hunter2</b>'

async function openCrm(url: string, timeoutMillis = '10000') {
  await runOn(
    url,
    'create table depts (code text primary key)',
    'create table people (login text primary key, dept text references depts (code), nick text)',
    'create table emails (login text references people (login) on delete cascade, address text)',
    'create table orders (buyer text references people (login))',
  )
  const target = await openTarget(url, {
    userTable: 'people',
    userName: 'login',
    'column.userName': 'login',
    'column.title': 'dept',
    'column.nickName': 'nick',
    'values.emails': 'emails(login, address)',
    timeoutMillis,
  })
  onTestFinished(async () => target.close?.())
  return openGatewayOn(target, builtInParams)
}

const ann = { userName: 'ann', nickName: 'a', emails: [{ value: 'ann@x.test' }] }

async function isEmpty(url: string): Promise<void> {
  for (const table of ['people', 'emails']) expect(await runOn(url, `select * from ${table}`)).toEqual([])
}

onEachEmptyDatabase('SCIM in front of an application that refuses', (freshUrl) => {
  test('a value that refers to nothing, and deleting what others refer to, are the mistake of the caller', async () => {
    const url = await freshUrl()
    const { send } = await openCrm(url)
    const refused = await send('POST', '/Users', { ...ann, title: 'nowhere' })
    expect([refused.status, String(refused.body['detail'])]).toEqual([
      400,
      expect.not.stringMatching(/foreign|people/i),
    ])
    await isEmpty(url)
    expect((await send('POST', '/Users', ann)).status).toBe(201)
    await runOn(url, `insert into orders values ('ann')`)
    expect((await send('DELETE', '/Users/ann')).status).toBe(400)
    const kept = await send('GET', '/Users/ann')
    expect(kept.body).toMatchObject({ nickName: 'a', emails: [{ value: 'ann@x.test' }] })
  })

  test('a trigger that fails: nothing is stored, and its words reach no client', async () => {
    const url = await freshUrl()
    const { send } = await openCrm(url)
    const statements = url.startsWith('sqlite:')
      ? [`create trigger t before insert on emails begin select raise(abort, '${nasty}'); end`]
      : [
          `create function f() returns trigger language plpgsql as $$ begin raise exception '%', '${nasty}'; end $$`,
          'create trigger t before insert on emails for each row execute function f()',
        ]
    await runOn(url, ...statements)
    const { status, body } = await send('POST', '/Users', ann)
    expect([status, JSON.stringify(body)]).toEqual([502, expect.not.stringMatching(/hunter2|31m/)])
    await isEmpty(url)
  })
})

describe.skipIf(postgresUrl() === '')('SCIM in front of a PostgreSQL whose trigger', () => {
  /** `always` or only the first two times: a sequence counts also what is undone. */
  async function openWith(statement: string, always: boolean) {
    const url = await freshSchema()
    const gateway = await openCrm(url, '500')
    const often = always ? 'true' : `nextval('tries') < 3`
    await runOn(
      url,
      'create sequence tries',
      `create function f() returns trigger language plpgsql as $$ begin if ${often} then ${statement}; end if; return new; end $$`,
      'create trigger t after insert on emails for each row execute function f()',
    )
    return { ...gateway, url }
  }
  const deadlock = `raise exception 'deadlock detected' using errcode = '40P01'`
  const die = 'perform pg_terminate_backend(pg_backend_pid())'

  test.each([
    ['has a deadlock every time', deadlock, 503],
    ['ends its connection every time', die, 503],
    ['sleeps', 'perform pg_sleep(60)', 504],
    ['waits for a lock of another', 'perform pg_advisory_xact_lock(1)', 504],
  ])('%s: the answer comes in time, and nothing is stored', async (_what, statement, expected) => {
    const { send, url } = await openWith(statement, true)
    const holder = statement.includes('advisory') ? runOn(url, 'select pg_advisory_lock(1), pg_sleep(2)') : undefined
    if (holder !== undefined) await new Promise((resume) => setTimeout(resume, 200))
    const since = performance.now()
    const { status, body } = await send('POST', '/Users', ann)
    expect([status, JSON.stringify(body)]).toEqual([expected, expect.not.stringMatching(/deadlock|terminat/)])
    expect(performance.now() - since).toBeLessThan(10_000)
    await holder
    await isEmpty(url)
  })

  test('has a deadlock twice: the change is made once', async () => {
    const { send, url } = await openWith(deadlock, false)
    expect((await send('POST', '/Users', ann)).status).toBe(201)
    expect(await runOn(url, 'select login from emails')).toEqual([{ login: 'ann' }])
  })
})

describe.skipIf(inject('slapd') === '')('SCIM in front of an LDAP server', () => {
  async function open(more: Record<string, string> = {}) {
    const slapd = await sharedSlapd()
    const branch = await newBranch(slapd)
    const target = await openLdap(slapd, branch, { 'attribute.userName': 'uid', ...more })
    onTestFinished(async () => target.close?.())
    const entries = async () =>
      (await asAdmin(slapd, (client) => client.search(branch, { scope: 'one', attributes: ['*'] }))).searchEntries
    return { ...(await openGatewayOn(target, builtInParams)), slapd, branch, entries }
  }

  test.each(['createTimestamp', 'entryUUID', 'modifiersName', 'structuralObjectClass', 'entryDN'])(
    'a client cannot write %s, which the server computes',
    async (attribute) => {
      const { send, entries } = await open({ 'attribute.title': attribute })
      for (const title of ['x', '20260101000000Z', 'cn=admin,dc=example,dc=test']) {
        const refused = await send('POST', '/Users', { userName: 'ann', title })
        expect([title, refused.status, JSON.stringify(refused.body)]).toEqual([
          title,
          400,
          expect.not.stringMatching(/modification|syntax/i),
        ])
        expect(await entries()).toEqual([])
      }
    },
  )

  test('a value of 4 MB and 10,000 values are read whole, and every character of a name stays in it', async () => {
    const { send, slapd, branch, entries } = await open({
      'attribute.title': 'description',
      'attribute.nickName': 'cn',
    })
    const many = Array.from({ length: 10_000 }, (_, i) => `value ${i}`)
    const photo = { jpegPhoto: ['x'.repeat(3_500_000)] }
    await addEntry(slapd, `uid=big,${branch}`, {
      objectClass: ['account', 'extensibleObject'],
      uid: ['big'],
      cn: many,
      ...photo,
    })
    const read = await send('GET', '/Users?filter=userName%20eq%20%22big%22')
    expect([read.status, read.body['totalResults']]).toEqual([200, 1])
    for (const userName of [',', '+', '"', '\\', '<', '>', ';', '=', '#', '/', '*'].map(
      (sign) => `${sign}a${sign}b${sign}`,
    )) {
      const { status, body } = await send('POST', '/Users', { userName })
      expect([userName, status, body['userName']]).toEqual([userName, 201, userName])
      expect((await send('DELETE', `/Users/${String(body['id'])}`)).status).toBe(204)
    }
    const nul = await send('POST', '/Users', { userName: 'a\0,dc=x' })
    expect(nul.status).toBe(400)
    expect(await entries()).toHaveLength(1)
  })

  test('a new login whose name belongs to an entry of another kind is a conflict, and both stay', async () => {
    const { send, slapd, branch, entries } = await open()
    await addEntry(slapd, `uid=bob,${branch}`, { objectClass: ['device', 'uidObject'], cn: ['printer'], uid: ['bob'] })
    const made = await send('POST', '/Users', { userName: 'ann' })
    const before = await entries()
    const { status } = await send('PUT', `/Users/${String(made.body['id'])}`, { userName: 'bob' })
    expect(status).toBe(409)
    expect((await send('POST', '/Users', { userName: 'bob' })).status).toBe(409)
    expect(await entries()).toEqual(before)
  })
})
