import { sql } from 'kysely'
import { identitiesOf } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import { databaseNow } from '#storage/client/database-time.ts'
import type { SqlReader } from '#storage/client/sql-client.ts'
import { isStorable, lookupKey } from '#storage/client/text-keys.ts'
import type { RunPage, RunQuery, RunState } from '#storage/run-store.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { pruneAtOnce } from '#storage/sql/prune.ts'
import { builderFor, dynamic, fixed } from '#storage/sql/queries.ts'
import type { ClaimedRow, StepRow, SummaryRow } from '#storage/sql/run-records.ts'
import { stepColumns, summaryColumns, toSummary } from '#storage/sql/run-records.ts'

const maxPage = 500

const unfinished = (['ready', 'running', 'waiting', 'incident'] as const).map((state) => sql.lit<RunState>(state))

interface Figures {
  readonly state: RunState
  readonly count: number
  readonly age: number | null
}

/** Statements that read runs. */
export const runReads = perDialect((dialect) => {
  const now = databaseNow(dialect)
  return {
    get: fixed<{ id: string }, SummaryRow & { data: string }>(dialect, (db, at) =>
      db
        .selectFrom('runs')
        .select([...summaryColumns, 'data'])
        .where('id', '=', at('id')),
    ),
    getWhole: fixed<{ id: string }, ClaimedRow>(dialect, (db, at) =>
      db
        .selectFrom('runs')
        .select([...summaryColumns, 'data', 'signal', 'secret'])
        .where('id', '=', at('id')),
    ),
    steps: fixed<{ run: string; after: number }, StepRow & { seq: number }>(dialect, (db, at) =>
      db
        .selectFrom('steps')
        .select(['seq', ...stepColumns])
        .where('run', '=', at('run'))
        .where('seq', '>', at('after'))
        .orderBy('seq')
        .limit(500),
    ),
    readyOf: fixed<{ subject_key: string }, { seq: number }>(dialect, (db, at) =>
      db
        .selectFrom('runs')
        .select('seq')
        .where('subject_key', '=', at('subject_key'))
        .where('state', '=', sql.lit<RunState>('ready'))
        .limit(1),
    ),
    /** How many there are that have not ended, and for how long the first has been due, or been an incident. */
    figures: fixed<object, Figures>(dialect, (db) =>
      db
        .selectFrom('runs')
        .select('state')
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .select(sql<number | null>`${now} - min(case when state = 'ready' then due else updated end)`.as('age'))
        .where('state', 'in', unfinished)
        .groupBy('state'),
    ),
    /** Steps and approvals go with their run. */
    prune: fixed<{ before: number }, unknown>(dialect, (db, at) =>
      db
        .deleteFrom('runs')
        .where('seq', 'in', (query) =>
          query
            .selectFrom('runs')
            .select('seq')
            .where('ended', 'is not', null)
            .where('ended', '<', at('before'))
            .limit(pruneAtOnce),
        ),
    ),
    saveDefinition: fixed<{ hash: string; name: string; body: string }, unknown>(dialect, (db, at) =>
      db
        .insertInto('definitions')
        .values({ hash: at('hash'), name: at('name'), body: at('body'), created: now })
        .onConflict((conflict) => conflict.column('hash').doUpdateSet({ created: now })),
    ),
    /** Runs name what they are pinned to in their data: pairs of name and hash. */
    pruneDefinitions: fixed<{ before: number }, unknown>(dialect, (db, at) => {
      const pinned =
        dialect === 'sqlite'
          ? sql`select json_extract(pin.value, '$[1]') from runs, json_each(runs.data, '$.pins') as pin`
          : sql`select pin.value ->> 1 from runs, jsonb_array_elements(cast(data as jsonb) -> 'pins') as pin(value)`
      const open = sql.join(unfinished)
      return {
        compile: () =>
          sql`delete from definitions where created < ${at('before')}
            and hash not in (select definition from runs where state in (${open}))
            and hash not in (${pinned} where state in (${open}))`.compile(db),
      }
    }),
    definition: fixed<{ hash: string }, { name: string; body: string }>(dialect, (db, at) =>
      db.selectFrom('definitions').select(['name', 'body']).where('hash', '=', at('hash')),
    ),
  }
})

/** Latest first. */
export async function listRuns(reader: SqlReader, query: RunQuery): Promise<RunPage> {
  const limit = Math.max(1, Math.min(Math.trunc(query.limit) || 1, maxPage))
  if (query.after !== undefined && !/^\d{1,15}$/.test(query.after)) {
    throw new GatewayError('BAD_REQUEST', `not a page of runs: ${query.after}`)
  }
  const { states, name, subject, requestor } = query
  if ([name, subject, requestor].some((text) => text !== undefined && !isStorable(text))) return { runs: [] }
  if (states?.length === 0) return { runs: [] }
  let select = builderFor(reader.dialect).selectFrom('runs').select(summaryColumns)
  if (states !== undefined) select = select.where('state', 'in', states)
  if (name !== undefined) select = select.where('name', '=', name)
  if (subject !== undefined) select = select.where('subject_key', '=', lookupKey(subject))
  if (requestor !== undefined) select = select.where('requestor_key', '=', lookupKey(requestor))
  if (query.requestedBy !== undefined) {
    select = select.where('requestor_identity', 'in', identitiesOf(query.requestedBy))
  }
  if (query.about !== undefined) select = select.where('subject_identity', 'in', identitiesOf(query.about))
  if (query.after !== undefined) select = select.where('seq', '<', Number(query.after))
  const rows = await reader.query(dynamic(select.orderBy('seq', 'desc').limit(limit + 1)))
  const last = rows[limit - 1]
  const runs = rows.slice(0, limit).map(toSummary)
  return rows.length > limit && last !== undefined ? { runs, next: String(last.seq) } : { runs }
}
