import { columns, statement } from '#database/statement.ts'
import { EventStore } from '#features/scim/events/event-store.ts'
import { memoryDatabase } from '#testing/databases/memory-database.ts'

interface StreamRow {
  readonly owner: string
  readonly failures: number
  readonly retryAt: number
}

const findStream = statement<{ name: string }, StreamRow>(
  `select ${columns(['owner', 'failures', 'retryAt'])} from event_streams where name = :name`,
)

/** Events in their own database, which the test can read. */
export function memoryEventStore() {
  const database = memoryDatabase()
  const store = new EventStore(database)
  return Object.assign(store, {
    stream: async (name: string): Promise<StreamRow | undefined> => findStream.first(database, { name }),
    ids: async (name: string): Promise<string[]> => (await store.read(name, 100)).map(({ id }) => id),
  })
}
