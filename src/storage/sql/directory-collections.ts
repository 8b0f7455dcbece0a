import { GatewayError } from '#kernel/errors.ts'
import type { SqlClient, SqlReader } from '#storage/client/sql-client.ts'
import { assertStorable } from '#storage/client/text-keys.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { fixed } from '#storage/sql/queries.ts'

/** The keys of a directory's two collections. */
export interface Collections {
  readonly users: number
  readonly groups: number
}

const statements = perDialect((dialect) => ({
  find: fixed<{ directory: string }, { pk: number; kind: string }>(dialect, (db, at) =>
    db.selectFrom('collections').select(['pk', 'kind']).where('directory', '=', at('directory')),
  ),
  insert: fixed<{ directory: string; kind: string }, unknown>(dialect, (db, at) =>
    db
      .insertInto('collections')
      .values({ directory: at('directory'), kind: at('kind') })
      .onConflict((on) => on.columns(['directory', 'kind']).doNothing()),
  ),
}))

/** Finds the collections of a directory by its name when they are first needed, and makes them when there are none. */
export class DirectoryCollections {
  readonly #client: SqlClient
  readonly #directory: string
  #known: Collections | undefined

  constructor(client: SqlClient, directory: string) {
    assertStorable('directory name', directory)
    this.#client = client
    this.#directory = directory
  }

  /** Undefined until `get` has succeeded once. */
  get known(): Collections | undefined {
    return this.#known
  }

  async get(): Promise<Collections> {
    this.#known ??= (await this.#find(this.#client)) ?? (await this.#make())
    return this.#known
  }

  async #make(): Promise<Collections> {
    return await this.#client.transaction(async (tx) => {
      for (const kind of ['users', 'groups']) {
        await tx.run(statements(tx.dialect).insert({ directory: this.#directory, kind }))
      }
      const made = await this.#find(tx)
      if (made === undefined) throw new GatewayError('INTERNAL', `the directory ${this.#directory} could not be made`)
      return made
    })
  }

  async #find(reader: SqlReader): Promise<Collections | undefined> {
    const rows = await reader.query(statements(reader.dialect).find({ directory: this.#directory }))
    const users = rows.find(({ kind }) => kind === 'users')?.pk
    const groups = rows.find(({ kind }) => kind === 'groups')?.pk
    return users === undefined || groups === undefined ? undefined : { users, groups }
  }
}
