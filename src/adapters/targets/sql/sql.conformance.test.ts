import { expect, onTestFinished, test } from 'vitest'
import { targetConformance } from '#sdk/conformance/target-conformance.ts'
import { targetFixture, userOf } from '#sdk/conformance/target-fixture.ts'
import { hasLookups } from '#sdk/target/target.ts'
import { onEachEmptyDatabase } from '#testing/databases/databases.ts'
import {
  applicationParams,
  applicationStatements,
  makeApplication,
  openTarget,
  runOn,
} from '#testing/databases/sql-schema.ts'
import type { ParamValues } from '#testing/modules/fake-parse.ts'

/** Users whose only key is their login, and groups that are only names. */
const plainTables = [
  'create table users (login text primary key, "givenName" text, phone text)',
  'create table mails (login text not null references users, mail text not null, n integer not null, primary key (login, n))',
  'create table members (login text not null references users, team text not null)',
]
const plainParams: ParamValues = {
  userTable: 'users',
  userName: 'login',
  userPrimaryKey: 'login',
  'column.givenName': 'givenName',
  'column.phone': 'phone',
  'values.mail': 'mails(login, mail, n)',
  groupMode: 'One2Many',
  groupTable: 'members',
  groupName: 'team',
  groupUserKey: 'login',
}

/** In the form of OpenUnison: names without quotes, which PostgreSQL stores in lower case. */
const unquotedTables = (key: string) => [
  `create table localUsers (userId ${key}, sub varchar(255), mail varchar(255), firstName varchar(255))`,
  `create table localGroups (groupId ${key}, name varchar(255))`,
  'create table userGroups (userId integer references localUsers, groupId integer references localGroups)',
]
const unquotedParams: ParamValues = {
  userTable: 'localUsers',
  userPrimaryKey: 'userId',
  userName: 'sub',
  groupMode: 'ManyToMany',
  groupTable: 'localGroups',
  groupName: 'name',
  groupUserKey: 'userId',
  groupLinkTableName: 'userGroups',
  groupGroupKey: 'groupId',
  groupPrimaryKey: 'groupId',
}

onEachEmptyDatabase('the SQL target on tables that were created without quotes', (freshUrl) => {
  test('finds them by the names in the configuration', async () => {
    const url = await freshUrl()
    const key = url.startsWith('sqlite:') ? 'integer primary key' : 'serial primary key'
    await runOn(url, ...unquotedTables(key), "insert into localGroups (name) values ('crew')")
    const target = await openTarget(url, unquotedParams)
    onTestFinished(async () => {
      await target.close?.()
    })
    const { request } = targetFixture(target, { attributes: ['mail', 'firstName', 'sub'], groups: ['crew', 'b', 'c'] })
    const ada = userOf('ada', { firstName: ['Ada'], mail: ['ada@example.test'] }, ['crew'])
    await target.createUser(ada, ['firstName', 'mail'], request)
    const found = await target.findUser('ada', ['firstName', 'mail'], request)
    expect([found?.attributes.first('firstName'), found?.attributes.first('mail')]).toEqual(['Ada', 'ada@example.test'])
    expect(found?.groups).toEqual(['crew'])
    const rows = await runOn(url, 'select sub, firstName as first from localUsers')
    expect(rows).toEqual([{ sub: 'ada', first: 'Ada' }])
  })
})

onEachEmptyDatabase('the SQL target on a table of values of several kinds', (freshUrl) => {
  test('reads, writes and finds only the rows of each kind', async () => {
    const url = await freshUrl()
    await runOn(
      url,
      'create table users (login text primary key)',
      'create table mails (login text not null references users, mail text not null, n integer not null, kind text)',
      "insert into users values ('ada')",
      "insert into mails values ('ada', 'w', 0, 'work'), ('ada', 'h', 0, 'home'), ('ada', 'x', 0, 'other'), ('ada', 'y', 1, null)",
    )
    const target = await openTarget(url, {
      userTable: 'users',
      userName: 'login',
      'values.mail': 'mails(login, mail, n, kind=work)',
      'values.homeMail': 'mails(login, mail, n, kind = home)',
    })
    onTestFinished(async () => target.close?.())
    const names = ['mail', 'homeMail']
    const { request } = targetFixture(target, { attributes: ['mail', 'homeMail', 'login'], groups: ['a', 'b', 'c'] })
    const read = async () => (await target.findUser('ada', names, request))?.attributes.toObject()
    expect(await read()).toEqual({ mail: ['w'], homeMail: ['h'] })
    const options = { addOnly: false, attributes: names, keepGroups: true }
    await target.syncUser(userOf('ada', { mail: ['v', 'w'], homeMail: [] }), options, request)
    expect(await read()).toEqual({ mail: ['v', 'w'] })
    expect(await runOn(url, 'select mail, n, kind from mails order by kind nulls first, n')).toEqual([
      { mail: 'y', n: 1, kind: null },
      { mail: 'x', n: 0, kind: 'other' },
      { mail: 'v', n: 0, kind: 'work' },
      { mail: 'w', n: 1, kind: 'work' },
    ])
    if (!hasLookups(target)) throw new Error('no lookups')
    const total = async (attribute: string, value: string) =>
      (await target.searchUsers({ filter: { kind: 'equal', attribute, value }, offset: 0, limit: 10 })).total
    expect([await total('mail', 'v'), await total('homeMail', 'v'), await total('mail', 'x')]).toEqual([1, 0, 0])
  })
})

onEachEmptyDatabase('the SQL target', (freshUrl) => {
  const suite = (name: string, params: ParamValues, prepare: (url: string) => Promise<unknown>): void =>
    targetConformance(
      name,
      async () => {
        const url = await freshUrl()
        await prepare(url)
        const target = await openTarget(url, params)
        return {
          target,
          close: async () => {
            await target.close?.()
          },
        }
      },
      // Lookups compare like the database.
      { test: (title, run) => test(title, run), exactLookups: true },
    )

  suite('tables', applicationParams, makeApplication)
  suite('statements', applicationStatements, makeApplication)
  suite('logins and names', plainParams, (url) => runOn(url, ...plainTables))
})
