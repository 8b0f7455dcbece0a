import { type AliasedRawBuilder, type RawBuilder, sql } from 'kysely'
import { isToken } from '#storage/audit/audit-record.ts'
import type { SqlDialect, SqlQuery } from '#storage/client/sql-client.ts'
import { dialectTexts } from '#storage/client/statement.ts'
import type { RunState } from '#storage/run-store.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { builderFor, dynamic, fixed, type Place } from '#storage/sql/queries.ts'
import type { CallCounts, InPart, RunCounts, TokenCounts } from '#storage/statistics-store.ts'

/** Milliseconds. */
export interface SpanValues {
  readonly from: number
  readonly to: number
  readonly width: number
}

interface SpanAndMost extends SpanValues {
  readonly most: number
}

const states: readonly RunState[] = ['ready', 'running', 'waiting', 'incident', 'completed', 'failed', 'cancelled']

const countIf = <N extends string>(name: N, condition: RawBuilder<unknown>): AliasedRawBuilder<number, N> =>
  sql<number>`count(*) filter (where ${condition})`.as(name)

const countStates = states.map((state) => countIf(state, sql`state = ${sql.lit(state)}`))

const countClasses = [
  countIf('answered', sql`status < 400`),
  countIf('refused', sql`status >= 400 and status < 500`),
  countIf('failed', sql`status >= 500`),
] as const

type SpanPlace = Place<SpanValues>

const partOf = (at: SpanPlace, column: string): RawBuilder<number> =>
  sql`(${sql.ref(column)} - cast(${at('from')} as bigint)) / cast(${at('width')} as bigint)`

const within = (at: SpanPlace, column: string): RawBuilder<boolean> =>
  sql`${sql.ref(column)} >= cast(${at('from')} as bigint) and ${sql.ref(column)} < cast(${at('to')} as bigint)`

/** The words of the index, which serves only the same ones. */
const tokenWords = {
  sqlite: {
    isToken: sql.raw<boolean>(isToken(dialectTexts.sqlite)),
    action: sql<string>`json_extract(changes, '$[0][2]')`,
    decisions: sql<number>`json_array_length(changes)`,
  },
  postgres: {
    isToken: sql.raw<boolean>(isToken(dialectTexts.postgres)),
    action: sql<string>`changes::jsonb -> 0 ->> 2`,
    decisions: sql<number>`jsonb_array_length(changes::jsonb)`,
  },
} as const

function countTokens(dialect: SqlDialect) {
  const { action, decisions } = tokenWords[dialect]
  const count = <N extends keyof TokenCounts>(name: N, bySts: boolean, wanted: 'issue' | 'refuse') => {
    const by = bySts ? sql`workflow_name = 'sts'` : sql`workflow_name <> 'sts'`
    const sum = sql`sum(${decisions}) filter (where ${by} and ${action} = ${sql.lit(wanted)})`
    return sql<number>`cast(coalesce(${sum}, 0) as bigint)`.as(name)
  }
  return [
    count('stsIssued', true, 'issue'),
    count('stsRefused', true, 'refuse'),
    count('issuerIssued', false, 'issue'),
    count('issuerRefused', false, 'refuse'),
  ] as const
}

/** The middle one, or what lies in the middle between two. Whatever has been decided was approved, denied or cancelled. */
const medians = (at: SpanPlace): RawBuilder<InPart & { median: number }> => sql`
  select part, (min(millis) + max(millis)) / 2 as median
  from (
    select part, millis,
      row_number() over (partition by part order by millis) as place,
      count(*) over (partition by part) as amount
    from (
      select ${partOf(at, 'decided')} as part, decided - opened as millis
      from approvals
      where ${within(at, 'decided')} and state <> 'cancelled'
    ) as decided
  ) as placed
  where place in ((amount + 1) / 2, (amount + 2) / 2)
  group by part`

export const statisticsStatements = perDialect((dialect) => ({
  requests: fixed<SpanValues, InPart & RunCounts>(dialect, (db, at) =>
    db
      .selectFrom('runs')
      .select([partOf(at, 'created').as('part'), ...countStates])
      .where(within(at, 'created'))
      .groupBy('part'),
  ),
  workflows: fixed<SpanAndMost, { name: string } & RunCounts>(dialect, (db, at) =>
    db
      .selectFrom('runs')
      .select(['name', ...countStates])
      .where(within(at, 'created'))
      .groupBy('name')
      .orderBy(sql`count(*)`, 'desc')
      .orderBy('name')
      .limit(at('most')),
  ),
  opened: fixed<SpanValues, InPart & { opened: number; escalated: number }>(dialect, (db, at) =>
    db
      .selectFrom('approvals')
      .select([
        partOf(at, 'opened').as('part'),
        sql<number>`count(*)`.as('opened'),
        countIf('escalated', sql`escalation > 0`),
      ])
      .where(within(at, 'opened'))
      .groupBy('part'),
  ),
  decided: fixed<SpanValues, InPart & { approved: number; denied: number }>(dialect, (db, at) =>
    db
      .selectFrom('approvals')
      .select([
        partOf(at, 'decided').as('part'),
        countIf('approved', sql`state = 'approved'`),
        countIf('denied', sql`state = 'denied'`),
      ])
      .where(within(at, 'decided'))
      .groupBy('part'),
  ),
  medians: fixed<SpanValues, InPart & { median: number }>(dialect, (db, at) => ({
    compile: () => medians(at).compile(db),
  })),
  tokens: fixed<SpanValues, InPart & TokenCounts>(dialect, (db, at) =>
    db
      .selectFrom('audit')
      .select([partOf(at, 'time').as('part'), ...countTokens(dialect)])
      .where(within(at, 'time'))
      .where(tokenWords[dialect].isToken)
      .groupBy('part'),
  ),
}))

/** Values in the text of the call, since its list of journals is as long as it is. */
const placesOf = (values: SpanValues): SpanPlace => ((name) => sql`${values[name]}`) as SpanPlace

function callsWithin(dialect: SqlDialect, values: SpanValues, journals: readonly string[] | undefined) {
  const calls = builderFor(dialect)
    .selectFrom('journal')
    .where(within(placesOf(values), 'time'))
  // As an expression, since SQLite would read the whole journal by the index that begins with its name.
  return journals === undefined ? calls : calls.where(sql<string>`journal || ''`, 'in', journals)
}

export const countCalls = (
  dialect: SqlDialect,
  values: SpanValues,
  journals: readonly string[] | undefined,
): SqlQuery<InPart & CallCounts> =>
  dynamic(
    callsWithin(dialect, values, journals)
      .select([partOf(placesOf(values), 'time').as('part'), ...countClasses])
      .groupBy('part'),
  )

export const countCallers = (
  dialect: SqlDialect,
  { most, ...values }: SpanAndMost,
  journals: readonly string[] | undefined,
): SqlQuery<{ journal: string; caller: string } & CallCounts> =>
  dynamic(
    callsWithin(dialect, values, journals)
      .select(['journal', 'caller', ...countClasses])
      .groupBy(['journal', 'caller'])
      .orderBy(sql`count(*)`, 'desc')
      .orderBy('journal')
      .orderBy('caller')
      .limit(most),
  )
