import { expect, test } from 'vitest'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { parseSql } from './sql.ts'

function parse(params: ParamValues) {
  const issues = noIssues()
  const config = parseSql(fakeParams(params), issues, fakeParseContext())
  return { config, problems: issueTexts(issues.list) }
}

const users = { url: 'sqlite:/crm.db', userTable: 'users', userName: 'login' }

test("OpenUnison's parameters are read", () => {
  const { config, problems } = parse({
    driver: 'org.postgresql.Driver',
    url: 'jdbc:postgresql://db.example.com:5432/crm',
    user: 'unison',
    password: 'hunter2',
    maxCons: '5',
    maxIdleCons: '5',
    validationQuery: 'SELECT 1',
    userTable: 'localUsers',
    userPrimaryKey: 'userid',
    userName: 'sub',
    groupMode: 'ManyToMany',
    userSQL: '',
    groupSQL: '',
    customProvider: '',
    readOnly: 'false',
    groupTable: 'localGroups',
    groupName: 'name',
    groupPrimaryKey: 'groupid',
    groupLinkTableName: 'userGroups',
    groupUserKey: 'userid',
    groupGroupKey: 'groupid',
  })
  expect(problems).toEqual([])
  expect(config).toMatchObject({
    url: 'postgres://db.example.com:5432/crm',
    maxConnections: 5,
    schema: {
      kind: 'tables',
      tables: {
        users: { name: 'sub', id: 'userid', columns: new Map() },
        groups: { userRef: 'userid', own: { name: 'name', id: 'groupid', ref: 'groupid' } },
      },
    },
  })
})

test.each([
  ['ManyToMany', 'crew'],
  ['manytomany', 'crew'],
  ['Many2Many', 'crew'],
  ['OneToMany', 'title'],
  ['One2Many', 'title'],
  ['None', undefined],
])('groupMode %s', (groupMode, group) => {
  const { config, problems } = parse({
    ...users,
    groupMode,
    groupTable: 'crews',
    groupName: 'title',
    groupUserKey: 'person',
    groupGroupKey: 'crew',
    ...(groupMode === 'None' ? {} : { groupLinkTableName: 'crew_people' }),
  })
  expect(problems).toEqual([])
  expect(config.schema.kind === 'tables' && config.schema.tables.groups?.members.group).toBe(group)
})

test('files are relative to the configuration folder', () => {
  expect(parse({ ...users, url: 'sqlite:data/crm.db' }).config.url).toBe('sqlite:/configuration/data/crm.db')
  expect(parse({ ...users, url: 'jdbc:sqlite:/srv/crm.db' }).config.url).toBe('sqlite:/srv/crm.db')
})

test.each<[ParamValues, RegExp]>([
  [{ ...users, url: 'jdbc:mysql://root:hunter2@db/x' }, /"url" must start with postgres:\/\/ or sqlite:/],
  [{ ...users, url: 'postgres:nowhere' }, /"url" must start with/],
  [{ ...users, url: 'postgres://root:hunter2@one,two:x/db' }, /"url" is not usable: host 2 of the address/],
  [{ url: 'sqlite:/crm.db', userName: 'login' }, /"userTable" is required, or statements instead/],
  [{ url: 'sqlite:/crm.db', userTable: 'users' }, /"userName" is required/],
  [{ ...users, userTable: 'a.b.c' }, /is not a table's name/],
  [{ ...users, userTable: 'users"; drop table users; --' }, /is not a table's name/],
  [{ ...users, 'column.mail': 'mail)' }, /is not a column's name/],
  [{ ...users, 'values.mail': 'emails' }, /must be a table and its columns/],
  [{ ...users, 'values.mail': 'emails(person)' }, /needs the column that refers to the user/],
  [{ ...users, 'values.mail': 'emails(a, b, c, d)' }, /needs the column that refers to the user/],
  [{ ...users, 'values.mail': 'emails(a, b)', 'column.Mail': 'mail' }, /has a column already/],
  [{ ...users, groupLinkTableName: 'members' }, /"groupTable" is required beside/],
  [
    { ...users, groupTable: 'g', groupName: 'n', groupUserKey: 'u', groupLinkTableName: 'm' },
    /"groupGroupKey" is required/,
  ],
  [
    {
      ...users,
      userVersion: 'v',
      groupTable: 'g',
      groupName: 'n',
      groupUserKey: 'u',
      groupLinkTableName: 'm',
      groupGroupKey: 'g',
    },
    /"groupVersion" is required beside "userVersion"/,
  ],
  [{ ...users, groupMode: 'Custom' }, /"Custom" is not supported: describe reads and changes with statements/],
  [{ ...users, groupMode: 'Many' }, /must be one of ManyToMany, OneToMany, None, not "Many"/],
  [{ ...users, customProvider: 'x.Y' }, /"customProvider" is not supported: describe reads and changes/],
  [{ ...users, userSQL: 'SELECT %S FROM u WHERE x=%L' }, /"userSQL" is not supported/],
  [{ ...users, groupSQL: 'SELECT %S FROM g WHERE x=%I' }, /"groupSQL" is not supported/],
  [{ ...users, customDBProvider: 'x.Y' }, /unknown parameter "customDBProvider"/],
])('%j is rejected', (params, problem) => {
  const { problems } = parse(params)
  expect(problems).toEqual([expect.stringMatching(problem)])
  expect(problems.join()).not.toContain('hunter2')
})

const statements = {
  url: 'sqlite:/crm.db',
  'statement.findUser': 'select * from users where login = :userID',
  'statement.createUser': 'insert into users values (:userID, :mail)',
  'statement.updateUser': 'update users set mail = :mail where login = :userID',
  'statement.deleteUser': 'delete from users where login = :userID',
}

test('statements replace tables', () => {
  const { config, problems } = parse(statements)
  expect(problems).toEqual([])
  expect(config.schema.kind).toBe('statements')
})

test.each<[ParamValues, RegExp]>([
  [{ ...statements, userTable: 'users' }, /"userTable" cannot be given beside statements/],
  [{ ...statements, 'statement.findUsr': 'select 1' }, /"statement.findUsr" there is no statement of that name/],
  [{ ...statements, 'statement.deleteUser': '' }, /"statement.deleteUser" /],
  [{ ...statements, 'statement.deleteUser': 'delete from users; drop table users' }, /must be one statement/],
  [{ ...statements, 'statement.deleteUser': 'delete from users where mail = :mail' }, /":mail" has no value here/],
  [
    { ...statements, 'statement.addValue.mail': 'insert into m values (:value)' },
    /"statement.removeValue.mail" is required/,
  ],
])('of statements, %j is rejected', (params, problem) => {
  expect(parse(params).problems).toEqual([expect.stringMatching(problem)])
})

test('four statements are required', () => {
  const { problems } = parse({ url: 'sqlite:/crm.db', 'statement.findUser': 'select 1' })
  expect(problems).toHaveLength(3)
})
