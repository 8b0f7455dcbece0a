import { randomBytes, scrypt } from 'node:crypto'
import { resolve } from 'node:path'
import { promisify } from 'node:util'
import type { Issues } from '#kernel/issues.ts'
import { argon2idHash, saltBytes, tagBytes, unpadded } from '#protocols/passwords/argon2id.ts'
import { postgresAddressProblem } from '#protocols/sql/postgres-address.ts'
import { choice, flag, type ParameterOptions, parsed, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { type ParameterTable, type ParsedParameters, readParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import { defineTarget } from '#sdk/target-module/target-module.ts'
import type { SqlTargetConfig } from './sql-target.ts'
import { readStatements } from './statements.ts'
import {
  type GroupTables,
  parseColumnName,
  parseTableColumns,
  parseTableName,
  type Tables,
  type ValuesTable,
} from './tables.ts'
import type { HashPassword } from './user-store.ts'

const passwordHashes = ['argon2id', 'scrypt'] as const
type PasswordHash = (typeof passwordHashes)[number]

/** RFC 9106, 4: the second recommended option, for memory that is shared with others. */
const argon = { memory: 64 * 1024, passes: 3, parallelism: 4 }
const work = { ln: 15, r: 8, p: 1 }

const scryptAsync = promisify<string, Buffer, number, object, Buffer>(scrypt)

const hashers: Readonly<Record<PasswordHash, HashPassword>> = {
  argon2id: (password) => argon2idHash(password, argon),
  async scrypt(password) {
    const salt = randomBytes(saltBytes)
    const { ln, r, p } = work
    const tag = await scryptAsync(password, salt, tagBytes, { N: 2 ** ln, r, p, maxmem: 64 * 1024 * 1024 })
    return `$scrypt$ln=${ln},r=${r},p=${p}$${unpadded(salt)}$${unpadded(tag)}`
  },
}

const table = (about: string, options: Partial<ParameterOptions> = {}) =>
  parsed('table', parseTableName, { about, ...options })
const column = (about: string, options: Partial<ParameterOptions> = {}) =>
  parsed('column', parseColumnName, { about, ...options })

/** Settings that OpenUnison's drivers needed and ours do not. */
const ignored = (about: string) => text({ about: `${about} Taken from existing YAML, and not needed.` })

const groupModes = new Map([
  ['manytomany', 'ManyToMany'],
  ['many2many', 'ManyToMany'],
  ['onetomany', 'OneToMany'],
  ['one2many', 'OneToMany'],
  ['none', 'None'],
] as const)

function readGroupMode(given: string): 'ManyToMany' | 'OneToMany' | 'None' {
  const word = given.toLowerCase()
  const mode = [...groupModes].find(([name]) => name === word)?.[1]
  if (mode !== undefined) return mode
  if (word === 'custom')
    throw new Error('"Custom" is not supported: describe reads and changes with statements instead')
  throw new Error(`must be one of ManyToMany, OneToMany, None, not "${given}"`)
}

const parameters = {
  url: text({
    about:
      '`postgres://…`, or `sqlite:` and a file that exists, relative to the configuration folder. `jdbc:` before it does no harm. Give it as a secret parameter when it holds a password.',
    required: true,
    secret: true,
  }),
  user: text({ about: 'The user name, if the address does not contain it.' }),
  password: text({ about: 'Its password, if the address does not contain it.', secret: true }),
  maxCons: wholeNumber({ about: 'Connections at the same time.', fallback: 10, min: 1, max: 200 }),
  timeoutMillis: wholeNumber({
    about: 'How long a statement, a connection or a lock may take, in milliseconds.',
    fallback: 10_000,
    min: 100,
    max: 120_000,
  }),
  searchLimit: wholeNumber({
    about: 'How many entries are filtered in memory if the database cannot evaluate a filter.',
    fallback: 10_000,
    min: 1,
    max: 1_000_000,
  }),
  userTable: table('The table, or view, of the users: `users` or `hr.users`.', { requirement: 'yes, or statements' }),
  userName: column('The column of the login. It must be unique.', { requirement: 'with `userTable`' }),
  userPrimaryKey: column(
    "The column that other tables refer to the user by, and the user's id; the login when absent. New users get it from the database, or a UUID where it has no default and is a `uuid` or a text of 36 characters.",
  ),
  userVersion: column(
    'A column that is given a new value with every change: a number, or a text of 36 characters. With it, changes can be bound to a [version](../../storage.md#versions).',
  ),
  userCreated: column(
    'The column of the time at which the user was created, of a timestamp type. SCIM shows it as `meta.created`. Where it has no default, the target writes it.',
  ),
  userModified: column(
    'The column of the time of the last change, of a timestamp type. SCIM shows it as `meta.lastModified`. The target sets it with every change that it makes; changes by others must set it, too.',
  ),
  'column.<attribute>': column(
    "The column of an attribute with one value. Without any such parameter every other column of the user table is an attribute of that name. An attribute on the login's column is the login.",
  ),
  'values.<attribute>': parsed('table and columns', parseTableColumns, {
    about:
      'The table of an attribute with several values: `emails(user_id, address)`, or `emails(user_id, address, rank)` where a number keeps their order. With `emails(user_id, address, rank, kind=work)` only the rows with this kind, so that a table can hold several attributes.',
  }),
  groupMode: parsed('one of ManyToMany, OneToMany, None', readGroupMode, {
    about:
      "`ManyToMany`: groups and memberships have a table each; `OneToMany`: `groupTable` holds a row with the group's name for each membership; `None`. In any letter case, with `To` or `2`. When absent, what the other parameters say. OpenUnison's `Custom` is an error: use statements instead.",
  }),
  groupTable: table('The table of the groups; with `OneToMany`, that of the memberships.'),
  groupName: column('Its column of the name.', { requirement: 'with `groupTable`' }),
  groupPrimaryKey: column("Its column that memberships refer to, and the group's id; the name when absent."),
  groupVersion: column('As `userVersion`, for the name, the attributes and the members of groups.', {
    requirement: 'with `userVersion`',
  }),
  groupCreated: column('As `userCreated`.'),
  groupModified: column('As `userModified`, for the name, the attributes and the members of groups.'),
  'groupColumn.<attribute>': column("The column of a group's attribute, such as `description`."),
  groupLinkTableName: table('The table of the memberships.', { requirement: 'with `ManyToMany`' }),
  groupUserKey: column('The column that refers to the user.', { requirement: 'with `groupTable`' }),
  groupGroupKey: column('The column that refers to the group.', { requirement: 'with `ManyToMany`' }),
  groupUserBy: choice(['', 'id', 'login'], {
    about: 'What `groupUserKey` holds: `id`, the value of `userPrimaryKey`, or `login`. `id` if there is one.',
    fallback: '',
  }),
  groupBy: choice(['', 'id', 'name'], {
    about: 'What `groupGroupKey` holds: `id`, the value of `groupPrimaryKey`, or `name`. `id` if there is one.',
    fallback: '',
  }),
  createMissingGroups: flag({
    about: 'Creates a missing group when a user joins it; otherwise it is an error.',
  }),
  passwordField: column('The column that passwords are written to, hashed.'),
  passwordHash: choice(passwordHashes, { about: 'How they are hashed, as PHC strings.', fallback: 'argon2id' }),
  readOnly: flag({
    about:
      'Refuses every change: a task that would write fails, and groups and passwords are not managed. What needs no change succeeds.',
  }),
  'statement.<name>': text({ about: 'A statement of your own, instead of tables; see below.' }),
  driver: ignored('The JDBC driver.'),
  maxIdleCons: ignored('Idle connections.'),
  validationQuery: ignored('A statement that tries a connection.'),
  beginEscape: ignored('What names are quoted with.'),
  endEscape: ignored('What names are quoted with.'),
  supportPasswords: ignored('Whether there are passwords: `passwordField` says so.'),
  userSQL: text({ about: 'Must be empty: use `statement.findUser` instead of OpenUnison’s statement.' }),
  groupSQL: text({ about: 'Must be empty: use statements instead of OpenUnison’s statement.' }),
  customProvider: text({ about: 'Must be empty: a Java class cannot be loaded. Use statements instead.' }),
} satisfies ParameterTable

type Given = ParsedParameters<typeof parameters>
type Report = (name: string, message: string) => void

export function parseSql(params: Params, issues: Issues, context: ParseContext): SqlTargetConfig {
  const given = readParameters(parameters, params, issues, context)
  const report: Report = (name, message) => issues.error(params.pathOf(name), `"${name}" ${message}`)
  const missing: Report = (name, message) => {
    if (params.values(name).every((value) => value === '')) report(name, message)
  }
  for (const name of ['userSQL', 'groupSQL', 'customProvider'] as const) {
    if (given[name] !== undefined) report(name, 'is not supported: describe reads and changes with statements instead')
  }
  const statements = given['statement.<name>']
  const { readOnly, user, password, timeoutMillis, searchLimit, maxCons: maxConnections } = given
  const hashPassword = hashers[given.passwordHash]
  const common = { readOnly, user, password, timeoutMillis, searchLimit, hashPassword, maxConnections }
  const url = given.url === '' ? undefined : address(given.url, context.folder, (message) => report('url', message))
  if (statements.size === 0) {
    return { ...common, url: url ?? '', schema: { kind: 'tables', tables: tablesOf(given, report, missing) } }
  }
  const tableNames = [...params.names()].filter((name) =>
    /^(?:user[TPNV]|group(?!SQL)|column\.|values\.|passwordField|createMissing)/.test(name),
  )
  for (const name of tableNames)
    if (params.values(name).some((value) => value !== '')) report(name, 'cannot be given beside statements')
  const read = readStatements(statements, (name, message) => report(`statement.${name}`, message))
  return { ...common, url: url ?? '', schema: { kind: 'statements', statements: read } }
}

function address(given: string, folder: string, report: (message: string) => void): string | undefined {
  const url = given.replace(/^jdbc:/, '').replace(/^postgresql:/, 'postgres:')
  if (/^postgres:\/\/./.test(url)) {
    const problem = postgresAddressProblem(url)
    if (problem !== undefined) report(`is not usable: ${problem}`)
    return url
  }
  const file = /^sqlite:(?:\/\/(?=\/))?(.+)$/.exec(url)?.[1]
  if (file === undefined) report('must start with postgres:// or sqlite:')
  return file === undefined ? undefined : `sqlite:${resolve(folder, file)}`
}

function tablesOf(given: Given, report: Report, missing: Report): Tables<string> {
  const { userTable, userName = '', userPrimaryKey = userName } = given
  if (userTable === undefined) missing('userTable', 'is required, or statements instead')
  if (userName === '') missing('userName', 'is required')
  const values = new Map<string, ValuesTable<string>>()
  for (const [attribute, found] of given['values.<attribute>']) {
    const [user, value, position] = found?.columns ?? []
    if (found === undefined || user === undefined) continue
    if (value === undefined || found.columns.length > 3) {
      report(`values.${attribute}`, 'needs the column that refers to the user, that of the value, and at most one more')
      continue
    }
    values.set(attribute, { table: found.table, user, value, position, fixed: found.fixed })
  }
  const columns = defined(given['column.<attribute>'])
  const twice = [...columns.keys()].find((name) => [...values.keys()].some((other) => same(name, other)))
  if (twice !== undefined) report(`values.${twice}`, 'has a column already')
  return {
    users: {
      table: userTable ?? { schema: undefined, table: '' },
      name: userName,
      id: userPrimaryKey,
      version: given.userVersion,
      times: { created: given.userCreated, modified: given.userModified },
      password: given.passwordField,
      columns,
      values,
    },
    groups: groupsOf(given, report, missing),
  }
}

function groupsOf(given: Given, report: Report, missing: Report): GroupTables<string> | undefined {
  const { groupTable, groupName, groupLinkTableName, groupUserKey, groupGroupKey } = given
  const implied = groupTable === undefined ? 'None' : groupLinkTableName === undefined ? 'OneToMany' : 'ManyToMany'
  const mode = given.groupMode ?? implied
  if (mode === 'None') {
    if (groupLinkTableName !== undefined) report('groupTable', 'is required beside "groupLinkTableName"')
    return undefined
  }
  const needed = {
    groupTable,
    groupName,
    groupUserKey,
    ...(mode === 'OneToMany' ? {} : { groupLinkTableName, groupGroupKey }),
  }
  for (const [name, value] of Object.entries(needed))
    if (value === undefined) missing(name, `is required where groups are ${mode}`)
  if (groupTable === undefined || groupName === undefined || groupUserKey === undefined) return undefined
  const { userName = '', userPrimaryKey = userName, groupPrimaryKey = groupName } = given
  const userRef = given.groupUserBy === 'login' ? userName : userPrimaryKey
  if (mode === 'OneToMany') {
    return { members: { table: groupTable, user: groupUserKey, group: groupName }, userRef, own: undefined }
  }
  if (groupLinkTableName === undefined || groupGroupKey === undefined) return undefined
  if (given.userVersion !== undefined && given.groupVersion === undefined)
    report('groupVersion', 'is required beside "userVersion"')
  return {
    members: { table: groupLinkTableName, user: groupUserKey, group: groupGroupKey },
    userRef,
    own: {
      table: groupTable,
      name: groupName,
      id: groupPrimaryKey,
      version: given.groupVersion,
      times: { created: given.groupCreated, modified: given.groupModified },
      columns: defined(given['groupColumn.<attribute>']),
      ref: given.groupBy === 'name' ? groupName : groupPrimaryKey,
      createMissing: given.createMissingGroups,
    },
  }
}

const same = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase()

const defined = (map: ReadonlyMap<string, string | undefined>): ReadonlyMap<string, string> =>
  new Map([...map].flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])))

/** Users and groups in the tables of an application, or behind statements. */
export default defineTarget<SqlTargetConfig>({
  className: 'targets.Sql',
  aliases: ['com.tremolosecurity.provisioning.core.providers.BasicDB'],
  parameters,
  parse: parseSql,
  passwords: ({ schema, readOnly }) =>
    !readOnly &&
    (schema.kind === 'tables'
      ? schema.tables.users.password !== undefined
      : schema.statements.statements.has('setPassword')),
  storable: ({ schema }) => {
    if (schema.kind === 'statements') return undefined
    const { columns, values } = schema.tables.users
    const names = [...columns.keys(), ...values.keys()].map((name) => name.toLowerCase())
    // Without any, every column of the table is an attribute.
    return names.length === 0 ? undefined : new Set(names)
  },
  /** Loaded on first use: a gateway without such a target is smaller and starts sooner. */
  create: async (config, host) => (await import('./sql-target.ts')).openSqlTarget(config, host),
})
