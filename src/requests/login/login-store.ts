import type { SqlClient } from '#database/sql-client.ts'
import { columns, deletedAtOnce, deleteInParts, inserted, statement } from '#database/statement.ts'
import { assertStorable, isStorable } from '#database/text-keys.ts'
import { GatewayError } from '#kernel/errors.ts'

/** A login that has not finished: its chain waits for the user. */
export interface Login {
  /** Public: URLs contain it. */
  readonly id: string
  /** The hash of the secret in the browser's login cookie; the secret itself is never stored. */
  readonly browser: string
  /** The host where it began. It can continue there only. */
  readonly host: string
  /** Its step, what is known so far and its destination. Encrypted by the caller. */
  readonly data: string
  /** Increases with every step, so that a step is taken once. */
  readonly version: number
  readonly created: Date
  readonly expires: Date
}

type LoginRow = Omit<Login, 'created' | 'expires'> & { readonly created: number; readonly expires: number }

/** How many logins of one browser are kept; one more removes the oldest. */
export const loginsPerBrowser = 20

export class LoginStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  /** Throws CONFLICT when the id exists. */
  async create(login: Login): Promise<void> {
    assertStorable('host', login.host)
    const row = { ...login, created: login.created.getTime(), expires: login.expires.getTime() }
    try {
      await this.#client.transaction(async (tx) => {
        await insert.run(tx, row)
        await trim.run(tx, { browser: login.browser })
      })
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'CONFLICT') throw error
      throw new GatewayError('CONFLICT', 'a login with this id exists', { cause: error })
    }
  }

  /** Undefined when absent, expired, or of another browser or host. */
  async find({ id, browser, host }: Pick<Login, 'id' | 'browser' | 'host'>, now: Date): Promise<Login | undefined> {
    if (!isStorable(id) || !isStorable(host)) return undefined
    const row = await find.first(this.#client, { id, browser, host, now: now.getTime() })
    return row && { ...row, created: new Date(row.created), expires: new Date(row.expires) }
  }

  /** Takes a step. False, and nothing changes, when it was taken already or the login has finished or expired. */
  async advance(id: string, version: number, data: string, now: Date): Promise<boolean> {
    const values = { id, version, data, now: now.getTime() }
    return (await this.#client.transaction((tx) => advance.run(tx, values))) > 0
  }

  /** Takes the last step. False when it was taken already or the login has finished or expired. */
  async finish(id: string, version: number, now: Date): Promise<boolean> {
    return (await this.#client.transaction((tx) => finish.run(tx, { id, version, now: now.getTime() }))) > 0
  }

  /** Whether the browser has a login that has not expired. */
  async knows(browser: string, now: Date): Promise<boolean> {
    return (await findByBrowser.first(this.#client, { browser, now: now.getTime() })) !== undefined
  }

  /** Returns how many were removed. */
  async deleteExpired(now: Date): Promise<number> {
    return await deleteInParts(this.#client, deleteExpired, { now: now.getTime() })
  }
}

const stored = ['id', 'browser', 'host', 'data', 'version', 'created', 'expires'] as const

const insert = statement<LoginRow>(`insert into logins ${inserted(stored)}`)
/** Deletes all but the latest of a browser. */
const trim = statement<{ browser: string }>(
  `delete from logins where browser = :browser and id not in
     (select id from logins where browser = :browser order by created desc, id limit ${loginsPerBrowser})`,
)
const find = statement<{ id: string; browser: string; host: string; now: number }, LoginRow>(
  `select ${columns(stored)} from logins
   where id = :id and browser = :browser and host = :host and expires > :now`,
)
const findByBrowser = statement<{ browser: string; now: number }, { id: string }>(
  `select id from logins where browser = :browser and expires > :now limit 1`,
)
const atVersion = `id = :id and version = :version and expires > :now`
const advance = statement<{ id: string; version: number; data: string; now: number }>(
  `update logins set data = :data, version = version + 1 where ${atVersion}`,
)
const finish = statement<{ id: string; version: number; now: number }>(`delete from logins where ${atVersion}`)
const deleteExpired = statement<{ now: number }>(
  `delete from logins where id in (select id from logins where expires <= :now limit ${deletedAtOnce})`,
)
