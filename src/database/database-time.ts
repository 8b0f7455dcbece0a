import type { When } from '#kernel/time.ts'
import type { DatabaseReader } from './sql-client.ts'
import { type DialectText, statement } from './statement.ts'

/** The time in milliseconds, in a transaction that began at `now`. */
export const timeOf = (when: When, now: number): number =>
  Math.trunc('at' in when ? when.at.getTime() : now + when.inMillis)

/** The values of a time in a statement, where `dueText` reads them. */
export interface DueValues {
  readonly dueAt: number | null
  readonly dueIn: number | null
}

export const dueValues = (when: When): DueValues =>
  'at' in when ? { dueAt: when.at.getTime(), dueIn: null } : { dueAt: null, dueIn: Math.trunc(when.inMillis) }

/** The time given by `dueValues`; null if both are. */
export const dueText = (on: DialectText, name = 'due'): string =>
  `coalesce(cast(:${name}At as bigint), ${on.now} + cast(:${name}In as bigint))`

const selectNow = statement<object, { now: number }>((on) => `select ${on.now} as now`)

export const readNow = async (reader: DatabaseReader): Promise<number> => (await selectNow.first(reader, {}))?.now ?? 0
