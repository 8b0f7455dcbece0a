import { restoreMarker } from '#database/migrations.ts'
import type { SqlClient } from '#database/sql-client.ts'
import { columns, statement } from '#database/statement.ts'
import type { SqlDialect } from '#protocols/sql/sql-database.ts'

/** A gateway process that uses the database. */
interface Replica {
  /** Host, process and a unique part. */
  readonly name: string
  readonly version: string
  readonly started: Date
  /** By the database's clock. */
  readonly seen: Date
}

/** Replicas that were not seen for this long are forgotten. */
const forgetMillis = 24 * 3_600_000
const maxListed = 500

/** The database itself, and the gateways that use it. */
export class SystemStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  get kind(): SqlDialect {
    return this.#client.dialect
  }

  /** Notes that a replica is alive, and forgets those that ended long ago. */
  async beat({ name, version, started }: Omit<Replica, 'seen'>): Promise<void> {
    await this.#client.transaction(async (tx) => {
      await beat.run(tx, { name, version, started: started.getTime() })
      await forgetOld.run(tx, { millis: forgetMillis })
    })
  }

  /** For a replica that ends. */
  async forget(name: string): Promise<void> {
    await this.#client.transaction((tx) => forget.run(tx, { name }))
  }

  /** Those that were seen in the last `millis`, by name, at most 500. */
  async replicas(millis: number): Promise<readonly Replica[]> {
    const rows = await findReplicas.all(this.#client, { millis })
    return rows.map(({ started, seen, ...row }) => ({ ...row, started: new Date(started), seen: new Date(seen) }))
  }

  /** From now on no gateway starts on the database, until `endRestore`. False if an earlier restore began and did not end. */
  async beginRestore(): Promise<boolean> {
    return (await this.#client.transaction((tx) => markRestore.run(tx, { name: restoreMarker }))) > 0
  }

  async endRestore(): Promise<void> {
    await this.#client.transaction((tx) => unmarkRestore.run(tx, { name: restoreMarker }))
  }

  /** A trigger, rule or policy on a table of PostgreSQL: a dump brings them with it, and no migration has any. */
  async foreignCode(): Promise<string | undefined> {
    return (await findForeignCode.first(this.#client, {}))?.name
  }

  /**
   * After a restored backup: ends all sessions, logins in progress and tokens of our issuers, since those that were
   * revoked after the backup would be valid again. Also forgets the replicas of that time.
   */
  async endLogins(): Promise<{ readonly sessions: number; readonly issued: number }> {
    return await this.#client.transaction(async (tx) => {
      const sessions = await deleteSessions.run(tx, {})
      const issued = await deleteIssued.run(tx, {})
      for (const each of [deleteMarks, deleteLogins, deleteReplicas]) await each.run(tx, {})
      return { sessions, issued }
    })
  }

  /** The size of the database in bytes, without logs that it writes ahead. */
  async bytes(): Promise<number | undefined> {
    return (await findSize.first(this.#client, {}))?.bytes
  }
}

interface ReplicaRow {
  readonly name: string
  readonly version: string
  readonly started: number
  readonly seen: number
}

const beat = statement<Pick<ReplicaRow, 'name' | 'version' | 'started'>>(
  (on) => `insert into replicas (name, version, started, seen) values (:name, :version, :started, ${on.now})
    on conflict (name) do update set seen = excluded.seen`,
)
const forget = statement<{ name: string }>('delete from replicas where name = :name')
const forgetOld = statement<{ millis: number }>((on) => `delete from replicas where seen < ${on.now} - :millis`)
const markRestore = statement<{ name: string }>(
  (on) =>
    `insert into schema_migrations (name, hash, applied) values (:name, '', ${on.now}) on conflict (name) do nothing`,
)
const unmarkRestore = statement<{ name: string }>('delete from schema_migrations where name = :name')
const findForeignCode = statement<object, { name: string }>((on) =>
  on.name === 'sqlite'
    ? "select '' as name where false"
    : `select kind || ' ' || code.name || ' of ' || relname as name from pg_class join (
         select 'trigger' as kind, tgname as name, tgrelid as owner from pg_trigger where not tgisinternal
         union all select 'rule', rulename, ev_class from pg_rewrite where rulename <> '_RETURN'
         union all select 'policy', polname, polrelid from pg_policy
       ) as code on code.owner = pg_class.oid
       where relnamespace = current_schema()::regnamespace order by 1 limit 1`,
)
const deleteSessions = statement('delete from sessions')
const deleteIssued = statement('delete from issuer_records')
const deleteMarks = statement('delete from session_marks')
const deleteLogins = statement('delete from logins')
const deleteReplicas = statement('delete from replicas')
const findReplicas = statement<{ millis: number }, ReplicaRow>(
  (on) => `select ${columns(['name', 'version', 'started', 'seen'])} from replicas
    where seen >= ${on.now} - :millis order by name limit ${maxListed}`,
)
const findSize = statement<object, { bytes: number }>((on) =>
  on.name === 'sqlite'
    ? 'select page_count * page_size as bytes from pragma_page_count(), pragma_page_size()'
    : 'select pg_database_size(current_database()) as bytes',
)
