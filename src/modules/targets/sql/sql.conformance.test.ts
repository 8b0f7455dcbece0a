import { expect, onTestFinished, test } from 'vitest'
import { targetConformance } from '#sdk/conformance/target-conformance.ts'
import { targetFixture, userOf } from '#sdk/conformance/target-fixture.ts'
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
