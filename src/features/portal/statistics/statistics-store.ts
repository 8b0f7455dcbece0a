import { setImmediate as otherWork } from 'node:timers/promises'
import sql, { join, raw, type Sql } from 'sql-template-tag'
import { isToken } from '#audit/store/audit-record.ts'
import type { SqlClient, SqlQuery } from '#database/sql-client.ts'
import { type DialectText, dynamic, type Statement, statement } from '#database/statement.ts'
import { isStorable } from '#database/text-keys.ts'
import type { SqlDialect } from '#protocols/sql/sql-database.ts'
import { runStates } from '#workflows/record/run.ts'
import type { CallCounts, RunCounts, StatisticsQuery } from './statistics.ts'

const maxNames = 100

/** The number of an interval, from 0. Intervals without counts are left out. */
export interface InPart {
  readonly part: number
}

/** Decisions of the token service, and of our own issuers. */
interface TokenCounts {
  readonly stsIssued: number
  readonly stsRefused: number
  readonly issuerIssued: number
  readonly issuerRefused: number
}

type OpenedCounts = { readonly opened: number; readonly escalated: number }
type DecidedCounts = { readonly approved: number; readonly denied: number }
type Median = InPart & { readonly median: number }
type OfWorkflow = { readonly name: string } & RunCounts
type OfCaller = { readonly journal: string; readonly caller: string } & CallCounts

export interface StatisticsCounts {
  /** By the time they began, with their present state. */
  readonly requests: readonly (InPart & RunCounts)[]
  /** Those with the most requests first. */
  readonly workflows: readonly OfWorkflow[]
  /** By the time they were opened; `escalated` counts those that were passed to others because no one decided. */
  readonly opened: readonly (InPart & OpenedCounts)[]
  /** By the time of the decision. */
  readonly decided: readonly (InPart & DecidedCounts)[]
  /** The median time from opening to decision, per interval and in total. */
  readonly decisionMillis: readonly Median[]
  readonly decisionMillisOfAll?: number
  readonly tokens: readonly (InPart & TokenCounts)[]
  readonly calls: readonly (InPart & CallCounts)[]
  /** Those with the most calls first. */
  readonly callers: readonly OfCaller[]
}

/** Milliseconds. */
interface SpanValues {
  readonly from: number
  readonly to: number
  readonly width: number
}

interface SpanAndMost extends SpanValues {
  readonly most: number
}

/** The database counts by its indexes: the cost grows with what happened in the time span, not with what is stored. */
export class StatisticsStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  /** `most`: how many workflows and callers are listed. */
  async count({
    from,
    to,
    partMillis,
    journals,
    most,
  }: StatisticsQuery & { readonly most: number }): Promise<StatisticsCounts> {
    const { dialect } = this.#client
    const span: SpanValues = { from: from.getTime(), to: to.getTime(), width: partMillis }
    const names = { ...span, most: Math.max(1, Math.min(Math.trunc(most) || 1, maxNames)) }
    const known = journals?.filter(isStorable)
    const { requests, workflows, opened, decided, medians, tokens } = statisticsStatements
    const wholeSpan = { ...span, width: Math.max(1, span.to - span.from) }
    const [whole] = await this.#read(medians.query(dialect, wholeSpan))
    return {
      requests: await this.#inParts(span, requests),
      workflows: await this.#read(workflows.query(dialect, names)),
      opened: await this.#inParts(span, opened),
      decided: await this.#inParts(span, decided),
      decisionMillis: await this.#inParts(span, medians),
      ...(whole === undefined ? {} : { decisionMillisOfAll: whole.median }),
      tokens: await this.#inParts(span, tokens),
      calls: known?.length === 0 ? [] : await this.#read(countCalls(dialect, span, known)),
      callers: known?.length === 0 ? [] : await this.#read(countCallers(dialect, names, known)),
    }
  }

  /**
   * SQLite counts in this thread, so it is queried interval by interval: it sorts less, and other work can run in
   * between.
   */
  async #inParts<R extends InPart>(span: SpanValues, counts: Statement<SpanValues, R>): Promise<R[]> {
    const { dialect } = this.#client
    if (dialect === 'postgres') return await this.#read(counts.query(dialect, span))
    const found: R[] = []
    for (let part = 0, from = span.from; from < span.to; part++, from += span.width) {
      const to = Math.min(from + span.width, span.to)
      for (const row of await this.#read(counts.query(dialect, { ...span, from, to }))) found.push({ ...row, part })
    }
    return found
  }

  async #read<R>(query: SqlQuery<R>): Promise<R[]> {
    const rows = await this.#client.query(query)
    await otherWork()
    return rows
  }
}

const partOf = (column: string): string => `(${column} - cast(:from as bigint)) / cast(:width as bigint) as part`
const within = (column: string): string => `${column} >= cast(:from as bigint) and ${column} < cast(:to as bigint)`
const countIf = (name: string, condition: string): string => `count(*) filter (where ${condition}) as ${name}`

const countStates = runStates.map((state) => countIf(state, `state = '${state}'`)).join(', ')
const countClasses = [
  countIf('answered', 'status < 400'),
  countIf('refused', 'status >= 400 and status < 500'),
  countIf('failed', 'status >= 500'),
].join(', ')

/** The texts of the index `audit_tokens`, which serves only these texts. */
const tokenTexts = {
  sqlite: {
    action: `json_extract(changes, '$[0][2]')`,
    decisions: `json_array_length(changes)`,
  },
  postgres: {
    action: `changes::jsonb -> 0 ->> 2`,
    decisions: `jsonb_array_length(changes::jsonb)`,
  },
} as const

function countTokens(on: DialectText): string {
  const { action, decisions } = tokenTexts[on.name]
  const count = (name: keyof TokenCounts, by: string, wanted: 'issue' | 'refuse'): string => {
    const sum = `sum(${decisions}) filter (where workflow_name ${by} 'sts' and ${action} = '${wanted}')`
    return `cast(coalesce(${sum}, 0) as bigint) as "${name}"`
  }
  return [
    count('stsIssued', '=', 'issue'),
    count('stsRefused', '=', 'refuse'),
    count('issuerIssued', '<>', 'issue'),
    count('issuerRefused', '<>', 'refuse'),
  ].join(', ')
}

/** Exported for the test of their query plans. */
export const statisticsStatements = {
  requests: statement<SpanValues, InPart & RunCounts>(
    `select ${partOf('created')}, ${countStates} from runs where ${within('created')} group by part`,
  ),
  workflows: statement<SpanAndMost, OfWorkflow>(
    `select name, ${countStates} from runs where ${within('created')}
     group by name order by count(*) desc, name limit :most`,
  ),
  opened: statement<SpanValues, InPart & OpenedCounts>(
    `select ${partOf('opened')}, count(*) as opened, ${countIf('escalated', 'escalation > 0')}
     from approvals where ${within('opened')} group by part`,
  ),
  decided: statement<SpanValues, InPart & DecidedCounts>(
    `select ${partOf('decided')}, ${countIf('approved', `state = 'approved'`)}, ${countIf('denied', `state = 'denied'`)}
     from approvals where ${within('decided')} group by part`,
  ),
  /** The middle time, or the mean of the two in the middle. A decided approval was approved, denied or cancelled. */
  medians: statement<SpanValues, Median>(
    `select part, (min(millis) + max(millis)) / 2 as median
     from (
       select part, millis,
         row_number() over (partition by part order by millis) as place,
         count(*) over (partition by part) as amount
       from (
         select ${partOf('decided')}, decided - opened as millis
         from approvals
         where ${within('decided')} and state <> 'cancelled'
       ) as decided
     ) as placed
     where place in ((amount + 1) / 2, (amount + 2) / 2)
     group by part`,
  ),
  tokens: statement<SpanValues, InPart & TokenCounts>(
    (on) => `select ${partOf('time')}, ${countTokens(on)}
      from audit where ${within('time')} and ${isToken(on)} group by part`,
  ),
}

/** The values of the call are in the text, since its list of journals has any length. */
function callsWithin({ from, to }: SpanValues, journals: readonly string[] | undefined): Sql {
  const time = sql`time >= cast(${from} as bigint) and time < cast(${to} as bigint)`
  // An expression, because SQLite would read the whole journal by the index that begins with its name.
  return journals === undefined ? time : sql`${time} and journal || '' in (${join([...journals])})`
}

export const countCalls = (
  dialect: SqlDialect,
  span: SpanValues,
  journals: readonly string[] | undefined,
): SqlQuery<InPart & CallCounts> =>
  dynamic(
    dialect,
    sql`select (time - cast(${span.from} as bigint)) / cast(${span.width} as bigint) as part, ${raw(countClasses)}
      from journal where ${callsWithin(span, journals)} group by part`,
  )

export const countCallers = (
  dialect: SqlDialect,
  span: SpanAndMost,
  journals: readonly string[] | undefined,
): SqlQuery<OfCaller> =>
  dynamic(
    dialect,
    sql`select journal, caller, ${raw(countClasses)} from journal where ${callsWithin(span, journals)}
      group by journal, caller order by count(*) desc, journal, caller limit ${span.most}`,
  )
