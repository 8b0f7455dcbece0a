import { sql } from 'kysely'
import { maxListedSessions, maxSessionsPerUser } from '#storage/session-store.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { fixed } from '#storage/sql/queries.ts'
import type { SqlDialect } from '#storage/sql/sql-client.ts'

export interface SessionRow {
  readonly id: string
  readonly public_id: string
  readonly context: string
  readonly application: string
  readonly user_id: string
  readonly user_key: string
  readonly data: string
  readonly created: number
  readonly touched: number
  readonly idle_seconds: number
  readonly ends: number | null
}

export interface NewSessionRow extends SessionRow {
  readonly login_key: string
  readonly expires: number
}

type EndedRow = Pick<SessionRow, 'public_id' | 'application' | 'user_id'>
type Change = Pick<NewSessionRow, 'id' | 'data' | 'idle_seconds' | 'expires'>

const columns = [
  'id',
  'public_id',
  'context',
  'application',
  'user_id',
  'user_key',
  'data',
  'created',
  'touched',
  'idle_seconds',
  'ends',
] as const
/** How many expired sessions one transaction removes, so that others do not wait long. */
export const collectAtOnce = 1000

export const sessionStatements = perDialect((dialect) => ({
  insert: fixed<NewSessionRow, unknown>(dialect, (db, at) =>
    db.insertInto('sessions').values({
      id: at('id'),
      public_id: at('public_id'),
      context: at('context'),
      application: at('application'),
      user_id: at('user_id'),
      user_key: at('user_key'),
      login_key: at('login_key'),
      data: at('data'),
      created: at('created'),
      touched: at('touched'),
      idle_seconds: at('idle_seconds'),
      ends: at('ends'),
      expires: at('expires'),
    }),
  ),
  find: selectLive(dialect, false),
  findForUpdate: selectLive(dialect, true),
  touch: fixed<{ id: string; now: number; expires: number }, unknown>(dialect, (db, at) =>
    db
      .updateTable('sessions')
      .set({ touched: at('now'), expires: at('expires') })
      .where('id', '=', at('id'))
      .where('expires', '>', at('now'))
      .where('touched', '<', at('now')),
  ),
  change: fixed<Change, unknown>(dialect, (db, at) =>
    db
      .updateTable('sessions')
      .set({ data: at('data'), idle_seconds: at('idle_seconds'), expires: at('expires') })
      .where('id', '=', at('id')),
  ),
  delete: fixed<{ id: string }, unknown>(dialect, (db, at) => db.deleteFrom('sessions').where('id', '=', at('id'))),
  findPublic: fixed<{ public_id: string; now: number }, SessionRow>(dialect, (db, at) =>
    db.selectFrom('sessions').select(columns).where('public_id', '=', at('public_id')).where('expires', '>', at('now')),
  ),
  ofUser: fixed<{ user_key: string; now: number }, SessionRow>(dialect, (db, at) =>
    db
      .selectFrom('sessions')
      .select(columns)
      .where('user_key', '=', at('user_key'))
      .where('expires', '>', at('now'))
      .orderBy('created', 'desc')
      .orderBy('id')
      .limit(maxListedSessions),
  ),
  deletePublic: fixed<{ user_key: string; public_id: string }, unknown>(dialect, (db, at) =>
    db.deleteFrom('sessions').where('public_id', '=', at('public_id')).where('user_key', '=', at('user_key')),
  ),
  deleteOfUser: fixed<{ user_key: string; except: string }, unknown>(dialect, (db, at) =>
    db.deleteFrom('sessions').where('user_key', '=', at('user_key')).where('public_id', '<>', at('except')),
  ),
  endOfOwner: fixed<{ user_key: string; except: string }, EndedRow>(dialect, (db, at) =>
    db
      .deleteFrom('sessions')
      .where('user_key', '=', at('user_key'))
      .where('public_id', '<>', at('except'))
      .returning(['public_id', 'application', 'user_id']),
  ),
  endOfLogin: fixed<{ login_key: string; except: string }, EndedRow>(dialect, (db, at) =>
    db
      .deleteFrom('sessions')
      .where('login_key', '=', at('login_key'))
      .where('public_id', '<>', at('except'))
      .returning(['public_id', 'application', 'user_id']),
  ),
  /** A row comes back where a user has more sessions than allowed. */
  tooMany: fixed<{ user_key: string }, { id: string }>(dialect, (db, at) =>
    db.selectFrom('sessions').select('id').where('user_key', '=', at('user_key')).limit(1).offset(maxSessionsPerUser),
  ),
  /** Some more than are too many, so that it is not done for each. Those that another removes just now are left to it. */
  trim: fixed<{ user_key: string }, unknown>(dialect, (db, at) =>
    db.deleteFrom('sessions').where('id', 'in', (query) => {
      const doomed = query
        .selectFrom('sessions')
        .select('id')
        .where('id', 'in', (inner) =>
          inner
            .selectFrom('sessions')
            .select('id')
            .where('user_key', '=', at('user_key'))
            .orderBy(sql`case when touched > created then 1 else 0 end`, 'desc')
            .orderBy('touched', 'desc')
            .orderBy('id')
            .limit(collectAtOnce)
            .offset(Math.floor(maxSessionsPerUser * 0.9)),
        )
      return dialect === 'postgres' ? doomed.forUpdate().skipLocked() : doomed
    }),
  ),
  mark: fixed<{ mark: string; public_id: string; expires: number }, unknown>(dialect, (db, at) =>
    db
      .insertInto('session_marks')
      .values({ mark: at('mark'), public_id: at('public_id'), expires: at('expires') })
      .onConflict((conflict) => conflict.columns(['mark', 'public_id']).doNothing()),
  ),
  deleteMarked: fixed<{ mark: string }, unknown>(dialect, (db, at) =>
    db
      .deleteFrom('sessions')
      .where('public_id', 'in', (query) =>
        query.selectFrom('session_marks').select('public_id').where('mark', '=', at('mark')),
      ),
  ),
  deleteMark: fixed<{ mark: string }, unknown>(dialect, (db, at) =>
    db.deleteFrom('session_marks').where('mark', '=', at('mark')),
  ),
  deleteExpiredMarks: fixed<{ now: number }, unknown>(dialect, (db, at) =>
    db.deleteFrom('session_marks').where('expires', '<=', at('now')),
  ),
  deleteExpired: fixed<{ now: number }, unknown>(dialect, (db, at) =>
    db
      .deleteFrom('sessions')
      .where('id', 'in', (query) =>
        query
          .selectFrom('sessions')
          .select('id')
          .where('expires', '<=', at('now'))
          .orderBy('expires')
          .orderBy('id')
          .limit(collectAtOnce),
      ),
  ),
}))

function selectLive(dialect: SqlDialect, lock: boolean) {
  return fixed<{ id: string; now: number }, SessionRow>(dialect, (db, at) => {
    const query = db.selectFrom('sessions').select(columns).where('id', '=', at('id')).where('expires', '>', at('now'))
    return lock && dialect === 'postgres' ? query.forUpdate() : query
  })
}
