import type { SqlClient } from '#storage/client/sql-client.ts'
import type { FailurePolicy, LoginFailureStore, LoginFailures } from '#storage/login-failure-store.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { pruneAtOnce, pruneInParts } from '#storage/sql/prune.ts'
import { fixed } from '#storage/sql/queries.ts'

interface FailureRow {
  readonly failures: number
  readonly locked_until: number
  readonly forget_at: number
}

type KeyedRow = FailureRow & { readonly key: string }

const statements = perDialect((dialect) => ({
  /** Makes the row that is then locked, so that those who count the same key do so one after another. */
  ensure: fixed<{ key: string }, unknown>(dialect, (db, at) =>
    db
      .insertInto('login_failures')
      .values({ key: at('key'), failures: 0, locked_until: 0, forget_at: 0 })
      .onConflict((conflict) => conflict.column('key').doNothing()),
  ),
  read: fixed<{ key: string }, FailureRow>(dialect, (db, at) => {
    const query = db
      .selectFrom('login_failures')
      .select(['failures', 'locked_until', 'forget_at'])
      .where('key', '=', at('key'))
    return dialect === 'postgres' ? query.forUpdate() : query
  }),
  write: fixed<KeyedRow, unknown>(dialect, (db, at) =>
    db
      .updateTable('login_failures')
      .set({ failures: at('failures'), locked_until: at('locked_until'), forget_at: at('forget_at') })
      .where('key', '=', at('key')),
  ),
  clear: fixed<{ key: string }, unknown>(dialect, (db, at) =>
    db.deleteFrom('login_failures').where('key', '=', at('key')),
  ),
  forgive: fixed<{ key: string }, unknown>(dialect, (db, at) =>
    db
      .updateTable('login_failures')
      .set(({ eb }) => ({ failures: eb('failures', '-', 1) }))
      .where('key', '=', at('key'))
      .where('failures', '>', 0),
  ),
  prune: fixed<{ now: number }, unknown>(dialect, (db, at) =>
    db
      .deleteFrom('login_failures')
      .where('key', 'in', (query) =>
        query.selectFrom('login_failures').select('key').where('forget_at', '<=', at('now')).limit(pruneAtOnce),
      ),
  ),
}))

export class SqlLoginFailureStore implements LoginFailureStore {
  readonly #client: SqlClient
  readonly #statements: ReturnType<typeof statements>

  constructor(client: SqlClient) {
    this.#client = client
    this.#statements = statements(client.dialect)
  }

  async count(key: string, policy: FailurePolicy, now: Date): Promise<LoginFailures & { readonly refused: boolean }> {
    const time = now.getTime()
    return await this.#client.transaction(async (tx) => {
      await tx.run(this.#statements.ensure({ key }))
      const [row] = await tx.query(this.#statements.read({ key }))
      const known = row ?? { failures: 0, locked_until: 0, forget_at: 0 }
      if (known.locked_until > time) {
        return { failures: known.failures, lockedUntil: new Date(known.locked_until), refused: true }
      }
      const failures = (known.forget_at > time ? known.failures : 0) + 1
      const locked = time + Math.max(0, policy.lockMillis(failures))
      await tx.run(
        this.#statements.write({ key, failures, locked_until: locked, forget_at: locked + policy.forgetMillis }),
      )
      return { failures, lockedUntil: new Date(locked), refused: false }
    })
  }

  async clear(key: string): Promise<void> {
    await this.#client.transaction((tx) => tx.run(this.#statements.clear({ key })))
  }

  async forgive(key: string): Promise<void> {
    await this.#client.transaction((tx) => tx.run(this.#statements.forgive({ key })))
  }

  deleteForgotten(now: Date): Promise<number> {
    return pruneInParts(this.#client, this.#statements.prune({ now: now.getTime() }))
  }
}
