import type { SqlDialect, SqlStatement, SqlValue } from '#protocols/sql/sql-database.ts'

/** A statement with placeholders for named values. */
export interface StatementText {
  /** The text before, between and after the placeholders. */
  readonly parts: readonly string[]
  readonly names: readonly string[]
}

const maxLength = 20_000

/** Skips quoted texts and names, comments and casts, so that only a placeholder or the statement's end remains. */
const tokens =
  /e'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\/|(\$\w*\$)[\s\S]*?\1|::|:([A-Za-z]\w*)|;/gi

/** One statement with placeholders such as `:mail`. Throws an Error that describes the problem. */
export function parseStatement(text: string): StatementText {
  if (text.length > maxLength) throw new Error(`is longer than ${maxLength} characters`)
  const statement = text.trim().replace(/;$/, '')
  const parts: string[] = []
  const names: string[] = []
  let done = 0
  for (const match of statement.matchAll(tokens)) {
    if (match[0] === ';') throw new Error('must be one statement')
    const name = match[2]
    if (name === undefined) continue
    parts.push(statement.slice(done, match.index))
    names.push(name)
    done = match.index + match[0].length
  }
  parts.push(statement.slice(done))
  if (statement === '') throw new Error('must be a statement')
  return { parts, names }
}

/** Each value is bound to its own placeholder, and is never part of the text. */
export function bindStatement(
  { parts, names }: StatementText,
  dialect: SqlDialect,
  value: (name: string) => SqlValue,
): SqlStatement {
  const sql = parts.reduce((text, part, i) => `${text}${dialect === 'postgres' ? `$${i}` : '?'}${part}`)
  return { sql, params: names.map(value) }
}

/** The purpose of a statement, and its values beside the user's attributes. */
interface Purpose {
  readonly values: readonly string[]
  /** Every attribute of the user is a placeholder with its name. */
  readonly attributes: boolean
}

const purposes: Readonly<Record<string, Purpose>> = {
  findUser: { values: ['userID'], attributes: false },
  findUserById: { values: ['id'], attributes: false },
  findUserGroups: { values: ['userID', 'id'], attributes: false },
  createUser: { values: ['userID'], attributes: true },
  updateUser: { values: ['userID', 'id'], attributes: true },
  deleteUser: { values: ['userID', 'id'], attributes: false },
  renameUser: { values: ['userID', 'id', 'newUserID'], attributes: false },
  addMember: { values: ['userID', 'id', 'group'], attributes: false },
  removeMember: { values: ['userID', 'id', 'group'], attributes: false },
  setPassword: { values: ['userID', 'id', 'password', 'hash'], attributes: false },
  searchUsers: { values: [], attributes: false },
  searchGroups: { values: [], attributes: false },
  findGroupMembers: { values: ['name', 'id'], attributes: false },
}
const valuePurposes: readonly string[] = ['addValue', 'removeValue']
const ofValue: Purpose = { values: ['userID', 'id', 'value'], attributes: false }

const statementNames: readonly string[] = [
  ...Object.keys(purposes),
  ...valuePurposes.map((name) => `${name}.<attribute>`),
]

/** Statements by name. */
export interface StatementsConfig {
  readonly statements: ReadonlyMap<string, StatementText>
  /** With `addValue.` and `removeValue.`, by name in lower case. */
  readonly multiValued: ReadonlySet<string>
}

/** Reports invalid and missing statements by name. */
export function readStatements(
  texts: ReadonlyMap<string, string | undefined>,
  report: (name: string, message: string) => void,
): StatementsConfig {
  const statements = new Map<string, StatementText>()
  for (const [name, text = ''] of texts) {
    const [kind = '', attribute] = splitOnce(name)
    const purpose = attribute !== undefined && valuePurposes.includes(kind) ? ofValue : own(name)
    if (purpose === undefined) {
      report(name, `there is no statement of that name; there are ${statementNames.join(', ')}`)
      continue
    }
    try {
      const statement = parseStatement(text)
      const unknown = purpose.attributes ? undefined : statement.names.find((each) => !purpose.values.includes(each))
      if (unknown !== undefined) report(name, `":${unknown}" has no value here; there are ${shown(purpose.values)}`)
      statements.set(name, statement)
    } catch (error) {
      report(name, error instanceof Error ? error.message : String(error))
    }
  }
  for (const name of missing(texts)) report(name, 'is required beside the other statements')
  const multiValued = [...texts.keys()].flatMap((name) => {
    const [kind, attribute] = splitOnce(name)
    return kind === 'addValue' && attribute !== undefined ? [attribute.toLowerCase()] : []
  })
  return { statements, multiValued: new Set(multiValued) }
}

function missing(texts: ReadonlyMap<string, unknown>): string[] {
  const pairs = [
    ['addMember', 'removeMember'],
    ['removeMember', 'addMember'],
    ['addMember', 'findUserGroups'],
    ['findGroupMembers', 'searchGroups'],
    ['searchGroups', 'searchUsers'],
    ...[...texts.keys()].flatMap((name) => {
      const [kind, attribute] = splitOnce(name)
      if (attribute === undefined) return []
      return [[name, `${kind === 'addValue' ? 'removeValue' : 'addValue'}.${attribute}`]]
    }),
  ]
  const required = ['findUser', 'createUser', 'updateUser', 'deleteUser']
  for (const [given = '', needed = ''] of pairs) if (texts.has(given)) required.push(needed)
  return [...new Set(required)].filter((name) => !texts.has(name))
}

const own = (name: string): Purpose | undefined => (Object.hasOwn(purposes, name) ? purposes[name] : undefined)

const shown = (names: readonly string[]): string =>
  names.length === 0 ? 'none' : names.map((name) => `:${name}`).join(', ')

function splitOnce(name: string): [string, string | undefined] {
  const dot = name.indexOf('.')
  return dot < 0 ? [name, undefined] : [name.slice(0, dot), name.slice(dot + 1)]
}
