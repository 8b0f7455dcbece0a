import { resolve } from 'node:path'
import type { Issues } from '#kernel/issues.ts'
import { type ParsedParameters, readParameters } from '#sdk/parameters.ts'
import type { Params } from '#sdk/params.ts'
import type { ParseContext } from '#sdk/parse-context.ts'
import { type HashPassword, hasherOf } from './password-hash.ts'
import { parameters } from './sql-parameters.ts'
import { readStatements, type StatementsConfig } from './statements-config.ts'
import type { GroupsConfig, TablesConfig, ValuesConfig } from './tables-config.ts'

export interface SqlTargetConfig {
  readonly url: string
  readonly user: string | undefined
  readonly password: string | undefined
  readonly maxConnections: number
  readonly timeoutMillis: number
  readonly searchLimit: number
  readonly hashPassword: HashPassword
  readonly schema:
    | { readonly kind: 'tables'; readonly tables: TablesConfig }
    | { readonly kind: 'statements'; readonly statements: StatementsConfig }
}

type Given = ParsedParameters<typeof parameters>
type Report = (name: string, message: string) => void

export function parseSql(params: Params, issues: Issues, context: ParseContext): SqlTargetConfig {
  const given = readParameters(parameters, params, issues, context)
  const report: Report = (name, message) => issues.error(params.pathOf(name), `"${name}" ${message}`)
  const missing: Report = (name, message) => {
    if (params.values(name).every((value) => value === '')) report(name, message)
  }
  const statements = given['statement.<name>']
  const { user, password, timeoutMillis, searchLimit, maxCons: maxConnections } = given
  const hashPassword = hasherOf(given.passwordHash)
  const common = { user, password, timeoutMillis, searchLimit, hashPassword, maxConnections }
  const url = address(given.url, context.folder)
  if (url === undefined && given.url !== '') report('url', 'must start with postgres:// or sqlite:')
  if (statements.size === 0) {
    return { ...common, url: url ?? '', schema: { kind: 'tables', tables: tablesOf(given, report, missing) } }
  }
  const tableNames = [...params.names()].filter((name) =>
    /^(?:user[TPNV]|group|column\.|values\.|passwordField|createMissing)/.test(name),
  )
  for (const name of tableNames)
    if (params.values(name).some((value) => value !== '')) report(name, 'cannot be given beside statements')
  const read = readStatements(statements, (name, message) => report(`statement.${name}`, message))
  return { ...common, url: url ?? '', schema: { kind: 'statements', statements: read } }
}

/** Undefined for an address of no known kind. */
function address(given: string, folder: string): string | undefined {
  const url = given.replace(/^jdbc:/, '').replace(/^postgresql:/, 'postgres:')
  if (/^postgres:\/\/./.test(url)) return URL.canParse(url) ? url : undefined
  const file = /^sqlite:(?:\/\/(?=\/))?(.+)$/.exec(url)?.[1]
  return file === undefined ? undefined : `sqlite:${resolve(folder, file)}`
}

function tablesOf(given: Given, report: Report, missing: Report): TablesConfig {
  const { userTable, userName } = given
  if (userTable === undefined) missing('userTable', 'is required, or statements instead')
  if (userName === undefined) missing('userName', 'is required')
  const values = new Map<string, ValuesConfig>()
  for (const [attribute, found] of given['values.<attribute>']) {
    const [user, value, position] = found?.columns ?? []
    if (found === undefined || user === undefined) continue
    if (value === undefined || found.columns.length > 3) {
      report(`values.${attribute}`, 'needs the column that refers to the user, that of the value, and at most one more')
      continue
    }
    values.set(attribute, { table: found.table, user, value, position })
  }
  const columns = defined(given['column.<attribute>'])
  const twice = [...columns.keys()].find((name) => [...values.keys()].some((other) => same(name, other)))
  if (twice !== undefined) report(`values.${twice}`, 'has a column already')
  return {
    users: {
      table: userTable ?? { schema: undefined, table: '' },
      login: userName ?? '',
      id: given.userPrimaryKey === userName ? undefined : given.userPrimaryKey,
      version: given.userVersion,
      times: { created: given.userCreated, modified: given.userModified },
      password: given.passwordField,
      columns: columns.size === 0 && values.size === 0 ? undefined : columns,
      values,
    },
    groups: groupsOf(given, report, missing),
  }
}

function groupsOf(given: Given, report: Report, missing: Report): GroupsConfig | undefined {
  const { groupTable, groupName, groupLinkTableName, groupUserKey, groupGroupKey } = given
  const implied = groupTable === undefined ? 'None' : groupLinkTableName === undefined ? 'One2Many' : 'Many2Many'
  const mode = given.groupMode === '' ? implied : given.groupMode
  if (mode === 'None') {
    if (groupLinkTableName !== undefined) report('groupTable', 'is required beside "groupLinkTableName"')
    return undefined
  }
  const needed = {
    groupTable,
    groupName,
    groupUserKey,
    ...(mode === 'One2Many' ? {} : { groupLinkTableName, groupGroupKey }),
  }
  for (const [name, value] of Object.entries(needed))
    if (value === undefined) missing(name, `is required where groups are ${mode}`)
  if (groupTable === undefined || groupName === undefined || groupUserKey === undefined) return undefined
  const hasUserId = given.userPrimaryKey !== undefined && given.userPrimaryKey !== given.userName
  const userBy = given.groupUserBy === '' ? (hasUserId ? 'id' : 'login') : given.groupUserBy
  if (mode === 'One2Many') {
    return { members: { table: groupTable, user: groupUserKey, group: groupName }, userBy, own: undefined }
  }
  if (groupLinkTableName === undefined || groupGroupKey === undefined) return undefined
  if (given.userVersion !== undefined && given.groupVersion === undefined)
    report('groupVersion', 'is required beside "userVersion"')
  const id = given.groupPrimaryKey === groupName ? undefined : given.groupPrimaryKey
  return {
    members: { table: groupLinkTableName, user: groupUserKey, group: groupGroupKey },
    userBy,
    own: {
      table: groupTable,
      name: groupName,
      id,
      version: given.groupVersion,
      times: { created: given.groupCreated, modified: given.groupModified },
      columns: defined(given['groupColumn.<attribute>']),
      groupBy: given.groupBy === '' ? (id === undefined ? 'name' : 'id') : given.groupBy,
      createMissing: given.createMissingGroups,
    },
  }
}

const same = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase()

const defined = (map: ReadonlyMap<string, string | undefined>): ReadonlyMap<string, string> =>
  new Map([...map].flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])))
