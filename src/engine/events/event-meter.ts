/** What became of events: stored, taken by a receiver, refused by it for good, or dropped because there were too many. */
export type EventOutcome = 'appended' | 'delivered' | 'refused' | 'dropped' | 'failed'

export interface EventMeter {
  /** `failed` counts attempts, the others count events. */
  counted(stream: string, outcome: EventOutcome, events: number): void
  /** How long the oldest event has been waiting; 0 where none waits. */
  oldest(stream: string, seconds: number): void
}

export const noMeter: EventMeter = { counted() {}, oldest() {} }
