import { realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { Clock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'
import type { AuditSeal } from '#storage/audit/audit-seal.ts'
import { LazyClient } from '#storage/client/lazy-client.ts'
import { migrate, readMigrations } from '#storage/client/migrate.ts'
import type { SqlClient, SqlDialect } from '#storage/client/sql-client.ts'
import { SqliteClient } from '#storage/client/sqlite.ts'

interface Opened {
  readonly client: LazyClient
  users: number
}

/**
 * The databases in use, by address. All who name the same one share its connections, and a file of SQLite has one
 * writer only; it is closed when the last of them has given it back.
 */
export class Databases {
  readonly #clock: Clock
  readonly #log: Logger
  readonly #seal: AuditSeal | undefined
  readonly #opened = new Map<string, Opened>()

  /** `seal` is for the audit, in whichever of the databases that is. */
  constructor(clock: Clock, log: Logger, seal?: AuditSeal) {
    this.#clock = clock
    this.#log = log
    this.#seal = seal
  }

  /** Does not connect yet. Throws an Error for an address of no known kind. */
  use(url: string): { readonly client: LazyClient; readonly release: () => Promise<void> } {
    const { dialect, address } = readAddress(url)
    const opened = this.#opened.get(address) ?? { client: this.#lazy(dialect, address), users: 0 }
    this.#opened.set(address, opened)
    opened.users++
    let held = true
    const release = async (): Promise<void> => {
      if (!held) return
      held = false
      if (--opened.users > 0) return
      this.#opened.delete(address)
      await opened.client.close()
    }
    return { client: opened.client, release }
  }

  #lazy(dialect: SqlDialect, address: string): LazyClient {
    return new LazyClient(dialect, async () => {
      const client = await connect(dialect, address, this.#log, this.#seal)
      try {
        await migrate(client, readMigrations(dialect), this.#clock, this.#log)
        return client
      } catch (error) {
        await client.close()
        throw error
      }
    })
  }
}

/** The driver of PostgreSQL is loaded where there is one only. */
async function connect(
  dialect: SqlDialect,
  address: string,
  log: Logger,
  seal: AuditSeal | undefined,
): Promise<SqlClient> {
  if (dialect === 'sqlite') return new SqliteClient(address, seal)
  const { PostgresClient } = await import('#storage/client/postgres.ts')
  return new PostgresClient(address, log, seal)
}

/** `postgres://…`, `postgresql://…` or `sqlite:<file>`. The message never shows the address, which may hold a password. */
export function readAddress(url: string): { readonly dialect: SqlDialect; readonly address: string } {
  if (/^postgres(ql)?:\/\//.test(url)) return { dialect: 'postgres', address: url }
  const file = /^sqlite:(?:\/\/(?=\/))?(.+)$/.exec(url)?.[1]
  if (file === undefined) throw new Error('a database address starts with postgres:// or sqlite:')
  return { dialect: 'sqlite', address: realFile(resolve(file)) }
}

/** One file has one name, whatever links lead to its folder. */
function realFile(file: string): string {
  try {
    return join(realpathSync(dirname(file)), basename(file))
  } catch {
    return file
  }
}
