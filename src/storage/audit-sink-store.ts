import type { AuditRecord } from '#storage/audit-store.ts'

/** The number of the last record that a sink has, by chain; 0 where absent. */
export type SinkPositions = ReadonlyMap<number, number>

export interface SinkTurn {
  /** Attempts in a row that failed before this turn. */
  readonly failures: number
  readonly positions: SinkPositions
}

/** A record with its place, which is what receivers recognize a repetition by. */
export type LinkedRecord = AuditRecord & Required<Pick<AuditRecord, 'link'>>

export interface SinkLag {
  /** Records that the sink does not have yet. */
  readonly records: number
  /** When the oldest of them was written. */
  readonly oldest?: Date
}

/** How far audit sinks have come, and who feeds each of them: the audit itself is the outbox. */
export interface AuditSinkStore {
  /**
   * Replaces the set of configured sinks. A new one gets the whole audit, or what is
   * written from now on; one that was configured before continues where it was.
   */
  configure(sinks: ReadonlyMap<string, 'beginning' | 'now'>): Promise<void>
  /**
   * The next records, oldest first, without gaps: those of one chain in their order, and a record never before one that
   * was committed when it was begun.
   */
  read(after: SinkPositions, limit: number): Promise<readonly LinkedRecord[]>
  lag(sink: string): Promise<SinkLag>
  /** Takes or prolongs the right to feed the sink. Undefined while another has it, or while it is to be left alone. */
  claim(sink: string, owner: string, times: { readonly now: Date; readonly until: Date }): Promise<SinkTurn | undefined>
  /** The sink has everything up to there. False, and nothing is changed, for one who lost the right to feed it. */
  advance(sink: string, owner: string, positions: SinkPositions): Promise<boolean>
  /** Gives the right back, if it is still the owner's. */
  release(sink: string, owner: string, outcome: { readonly failures: number; readonly retryAt?: Date }): Promise<void>
}
