import { test } from 'vitest'
import { targetConformance } from '#sdk/conformance/target-conformance.ts'
import { onEachEmptyDatabase } from '#testing/databases.ts'
import type { ParamValues } from '#testing/fake-parse.ts'
import { applicationParams, applicationStatements, makeApplication, openTarget, runOn } from '#testing/sql-schema.ts'

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
