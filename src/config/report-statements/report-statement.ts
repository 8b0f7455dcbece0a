import type { ReportSpec } from '#config/kinds/portal.ts'
import { viewsInstead } from '#openunison/report-tables/former-tables.ts'
import { type Piece, rewriteStatement } from '#openunison/report-tables/rewrite-statement.ts'
import { type SqlToken, sqlTokens } from '#protocols/sql/sql-tokens.ts'
import { readStatement } from './read-statement.ts'

/** In the order in which OpenUnison binds them to question marks. */
export const reportParameters = ['beginDate', 'endDate', 'userKey', 'currentUser'] as const
/** One of `reportParameters`. */
export type BoundParameter = (typeof reportParameters)[number]

/** A `select` on the report views, with placeholders for values. */
export interface ReportStatement {
  /** The texts before, between and after the placeholders. */
  readonly parts: readonly string[]
  /** The same for SQLite, if it differs. */
  readonly sqliteParts?: readonly string[]
  /** The value of each placeholder. */
  readonly places: readonly BoundParameter[]
}

interface ReadReport {
  /** Undefined if there are problems. */
  readonly statement: ReportStatement | undefined
  /** Messages about `sql`, to be printed after its name. */
  readonly problems: readonly string[]
  /** Declared, but not used by the statement. */
  readonly unused: readonly BoundParameter[]
  /** Fields of headerFields, dataFields and groupBy that the statement does not select. */
  readonly missing: readonly string[]
}

/** The parameters that a report requires. */
export const declaredParameters = ({ parameters }: Pick<ReportSpec, 'parameters'>): readonly BoundParameter[] =>
  reportParameters.filter((name) => parameters?.[name] === true)

/** The shown fields, and the one that groups rows. */
const fieldsOf = ({ headerFields, dataFields, groupings, groupBy }: ReportSpec): readonly string[] => [
  ...(groupings === true ? [...(headerFields ?? []), ...(groupBy === undefined ? [] : [groupBy])] : []),
  ...(dataFields ?? []),
]

/** The statement for the database, written again from its tokens, without comments. */
export function readReport(spec: ReportSpec): ReadReport {
  const declared = declaredParameters(spec)
  const refused = (problems: readonly string[]): ReadReport => ({
    statement: undefined,
    problems,
    unused: [],
    missing: [],
  })
  try {
    const tokens = sqlTokens(spec.sql)
    const { columns, problems, replaced, tokens: known } = readStatement(tokens)
    if (problems.length > 0) return refused(problems)
    const places = readPlaces(tokens, declared)
    const pieces = rewriteStatement(known, replaced)
    const foldsLogins = replaced.length > 0
    const parts = partsOf(pieces, 'postgres', places, foldsLogins)
    const sqliteParts = partsOf(pieces, 'sqlite', places, foldsLogins)
    const isSame = parts.every((part, i) => part === sqliteParts[i])
    return {
      statement: { parts, places, ...(isSame ? {} : { sqliteParts }) },
      problems,
      unused: declared.filter((name) => !places.includes(name)),
      missing: columns === undefined ? [] : fieldsOf(spec).filter((field) => !hasColumn(columns, field)),
    }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    return refused([`${reason}${viewsInstead(spec.sql)}`])
  }
}

function readPlaces(tokens: readonly SqlToken[], declared: readonly BoundParameter[]): readonly BoundParameter[] {
  const names = tokens.filter(({ kind }) => kind === 'place').map(({ value }) => value)
  const marks = names.filter((name) => name === '').length
  if (marks === 0) return names.map((name) => declaredAs(name, declared))
  if (marks < names.length) throw new Error('must have either named places or question marks')
  if (marks !== declared.length) {
    const given = declared.join(', ') || 'none'
    throw new Error(`has ${marks} question marks for the parameters that are declared: ${given}`)
  }
  return declared
}

function declaredAs(name: string, declared: readonly BoundParameter[]): BoundParameter {
  const known = reportParameters.find((parameter) => parameter === name)
  if (known === undefined)
    throw new Error(`has :${name}, which is none of ${reportParameters.map((n) => `:${n}`).join(', ')}`)
  if (!declared.includes(known)) throw new Error(`has :${name}, which needs parameters.${name}: true`)
  return known
}

/** `foldsLogins`: users of former tables are identified by their login in lower case. */
function partsOf(
  pieces: readonly Piece[],
  dialect: 'postgres' | 'sqlite',
  places: readonly BoundParameter[],
  foldsLogins: boolean,
): string[] {
  const parts: string[][] = [[]]
  for (const piece of pieces) {
    if (!('place' in piece)) {
      if (piece[dialect] !== '') parts.at(-1)?.push(piece[dialect])
      continue
    }
    const place = places[parts.length - 1]
    const folds = foldsLogins && (place === 'userKey' || place === 'currentUser')
    if (folds) parts.at(-1)?.push('lower(')
    parts.push(folds ? [')'] : [])
  }
  return parts.map((words) => words.join(' '))
}

/** Databases differ in the letter case of unquoted names. */
const hasColumn = (columns: readonly (string | undefined)[], field: string): boolean =>
  columns.some((column) => column?.toLowerCase() === field.toLowerCase())
