export interface AuditMeter {
  /** The sink took these records. */
  sent(sink: string, records: number): void
  /** An attempt failed. */
  failed(sink: string): void
  /** How many records the sink lacks, and for how long the oldest of them has been written. */
  lag(sink: string, records: number, seconds: number): void
  /** The sink is not configured any more. */
  forget(sink: string): void
  /** An anchor was kept, or could not be. */
  anchored(anchor: string, outcome: 'kept' | 'failed'): void
}
