import type { Closable } from '#kernel/scope.ts'
import { defineModule, type Module, type ModuleDefinition, type Prepared } from '#sdk/module.ts'

/** A record of the audit, as sinks get it: several rows that were written together. */
export interface SinkRecord {
  /** Its place, by which a receiver recognizes a repetition, and its hash. */
  readonly link: { readonly chain: number; readonly number: number; readonly hash: string }
  /** One JSON object for each row: that of `gatehouse audit export`. */
  readonly lines: readonly string[]
  readonly time: Date
}

export type SinkOutcome =
  | { readonly kind: 'accepted' }
  /** The same records come again, later. */
  | { readonly kind: 'failed'; readonly reason: string; readonly retryAfterMillis?: number }

/** What receives a copy of the audit. */
export interface AuditSink extends Closable {
  /**
   * How long a receiver may still lose what it took. The sink's position moves behind records only after that time without
   * a loss; 0 where `accepted` means that they are stored.
   */
  readonly settleMillis: number
  /** Settles when the receiver has all records, in their order, or may lack some. Does not throw. */
  send(records: readonly SinkRecord[], signal: AbortSignal): Promise<SinkOutcome>
  /** Whether the receiver broke off since the last call, so that what has not settled must be sent again. */
  hasLost?(): boolean
}

export type PreparedAuditSink = Prepared<AuditSink>
export type AuditSinkModule = Module<AuditSink>

export const defineAuditSink = <C>(definition: ModuleDefinition<C, AuditSink>): AuditSinkModule =>
  defineModule(definition)
