import { sql } from 'kysely'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { fixed, fixedInserts, fixedLists } from '#storage/sql/queries.ts'

const columns = ['stream', 'number', 'id', 'time', 'key_name', 'claims'] as const

type EventRecord = {
  readonly [K in (typeof columns)[number]]: K extends 'number' | 'time' ? number : string
}

type Stored = Pick<EventRecord, 'id' | 'time' | 'key_name' | 'claims'>

interface Claim {
  readonly stream: string
  readonly owner: string
  readonly now: number
  readonly until: number
}

interface Release {
  readonly stream: string
  readonly owner: string
  readonly failures: number
  readonly retry_at: number
}

/** The fixed statements of the event store. */
export const eventStatements = perDialect((dialect) => ({
  create: fixed<{ stream: string }, unknown>(dialect, (db, at) =>
    db
      .insertInto('event_streams')
      .values({ name: at('stream'), latest: 0, owner: '', lease_until: 0, failures: 0, retry_at: 0 })
      .onConflict((conflict) => conflict.doNothing()),
  ),
  advance: fixed<{ stream: string; by: number }, { latest: number }>(dialect, (db, at) =>
    db
      .updateTable('event_streams')
      .set({ latest: sql`latest + ${at('by')}` })
      .where('name', '=', at('stream'))
      .returning('latest'),
  ),
  insert: fixedInserts<EventRecord>(dialect, columns, (db, rows) => db.insertInto('events').values(rows)),
  read: fixed<{ stream: string; limit: number }, Stored>(dialect, (db, at) =>
    db
      .selectFrom('events')
      .select(['id', 'time', 'key_name', 'claims'])
      .where('stream', '=', at('stream'))
      .orderBy('number')
      .limit(at('limit')),
  ),
  remove: fixedLists<{ stream: string }, string, unknown>(dialect, (db, at, ids) =>
    db.deleteFrom('events').where('id', 'in', ids).where('stream', '=', at('stream')),
  ),
  oldest: fixed<{ stream: string }, { number: number; time: number; latest: number }>(dialect, (db, at) =>
    db
      .selectFrom('events')
      .innerJoin('event_streams', 'event_streams.name', 'events.stream')
      .select(['events.number', 'events.time', 'event_streams.latest'])
      .where('events.stream', '=', at('stream'))
      .orderBy('events.number')
      .limit(1),
  ),
  names: fixed<object, { name: string }>(dialect, (db) =>
    db.selectFrom('event_streams').select('name').orderBy('name'),
  ),
  dropOld: fixed<{ stream: string; since: number }, unknown>(dialect, (db, at) =>
    db.deleteFrom('events').where('stream', '=', at('stream')).where('time', '<', at('since')),
  ),
  dropMany: fixed<{ stream: string; keep: number }, unknown>(dialect, (db, at) =>
    db
      .deleteFrom('events')
      .where('stream', '=', at('stream'))
      .where('number', '<=', (query) =>
        query
          .selectFrom('events')
          .select('number')
          .where('stream', '=', at('stream'))
          .orderBy('number', 'desc')
          .limit(1)
          .offset(at('keep')),
      ),
  ),
  claim: fixed<Claim, { failures: number }>(dialect, (db, at) =>
    db
      .updateTable('event_streams')
      .set({ owner: at('owner'), lease_until: at('until') })
      .where('name', '=', at('stream'))
      .where('retry_at', '<=', at('now'))
      .where((or) => or.or([or('owner', '=', at('owner')), or('lease_until', '<=', at('now'))]))
      .returning('failures'),
  ),
  release: fixed<Release, unknown>(dialect, (db, at) =>
    db
      .updateTable('event_streams')
      .set({ owner: '', lease_until: 0, failures: at('failures'), retry_at: at('retry_at') })
      .where('name', '=', at('stream'))
      .where('owner', '=', at('owner')),
  ),
}))
