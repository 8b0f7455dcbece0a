import { join } from 'node:path'
import { sql } from 'kysely'
import type { UserDirectory, UserDirectoryOptions } from '#identity/user-directory.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'
import type { AuditStore } from '#storage/audit-store.ts'
import type { SessionStore } from '#storage/session-store.ts'
import { Databases } from '#storage/sql/databases.ts'
import { builderFor, dynamic } from '#storage/sql/queries.ts'
import { SqlAuditStore } from '#storage/sql/sql-audit-store.ts'
import { SqlSessionStore } from '#storage/sql/sql-session-store.ts'
import { SqlUserDirectory } from '#storage/sql/sql-user-directory.ts'

export interface StorageOptions {
  /** `postgres://…` or `sqlite:<file>`; else the file `gatehouse.db` in `dataFolder`. */
  readonly url?: string
  readonly dataFolder?: string
  readonly clock: Clock
  readonly log: Logger
}

/** All that Gatehouse keeps. */
export interface Storage {
  readonly sessions: SessionStore
  readonly audit: AuditStore
  /**
   * Does not wait for the database: one that cannot be reached is told by the methods of the directory. Throws an Error
   * for an address that is none. To be closed by whoever opened it.
   */
  userDirectory(options: UserDirectoryOptions): UserDirectory
  /**
   * Settles when the database answers, migrated to the present form; rejects with TARGET_UNREACHABLE when it does not
   * answer, and with an Error when it is of a form that this program must not touch.
   */
  ready(): Promise<void>
  /** Waits for writes under way. Directories of the same database that are still open keep it until they are closed. */
  close(): Promise<void>
}

/** Throws an Error when it is not said where the database is. Nothing is opened before `ready`, or the first use. */
export function openStorage({ url, dataFolder, clock, log }: StorageOptions): Storage {
  const address = url ?? (dataFolder === undefined ? undefined : `sqlite:${join(dataFolder, 'gatehouse.db')}`)
  if (address === undefined) throw new Error('a data folder or a database is needed')
  const databases = new Databases(clock, log)
  const { client, release } = databases.use(address)
  return {
    sessions: new SqlSessionStore(client),
    audit: new SqlAuditStore(client),
    userDirectory: (options) => {
      const used = databases.use(options.url ?? address)
      return new SqlUserDirectory(used.client, options.name, clock, used.release)
    },
    ready: async () => {
      await client.query(dynamic({ compile: () => sql`select 1`.compile(builderFor(client.dialect)) }))
    },
    close: release,
  }
}
