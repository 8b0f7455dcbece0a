import { statement } from '#database/statement.ts'
import type { JsonObject } from '#kernel/json.ts'
import { SessionStore } from '#requests/sessions/session-store.ts'
import { memoryDatabase } from '#testing/databases/memory-database.ts'

interface StoredData {
  readonly id: string
  readonly data: JsonObject
}

const select = statement<object, { id: string; data: string }>(`select id, data from sessions order by created, id`)
const update = statement<{ id: string; data: string }>(`update sessions set data = :data where id = :id`)

/** Sessions in their own database, which the test can read and change. */
export function memorySessionStore() {
  const database = memoryDatabase()
  return Object.assign(new SessionStore(database), {
    rows: async (): Promise<StoredData[]> =>
      (await select.all(database, {})).map(({ id, data }) => ({ id, data: JSON.parse(data) as JsonObject })),
    replaceData: async ({ id, data }: StoredData): Promise<void> => {
      await database.transaction((tx) => update.run(tx, { id, data: JSON.stringify(data) }))
    },
  })
}
