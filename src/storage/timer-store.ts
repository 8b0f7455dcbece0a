import type { JsonObject } from '#kernel/json.ts'

/** A time by the clock of the store, which all processes share. `inMillis` counts from the commit it is part of. */
export type When = { readonly at: Date } | { readonly inMillis: number }

/** Something that is to happen later, whatever happens to the process that asked for it. */
export interface NewTimer {
  /** Unique; made by whoever sets it. */
  readonly id: string
  readonly kind: string
  readonly due: When
  readonly run?: string
  /** Gone with the approval when that is decided. */
  readonly approval?: string
  readonly data?: JsonObject
}

/** The right to act on a timer. Void once the lease has run out and another has taken the timer. */
export interface TimerClaim {
  readonly id: string
  readonly fence: number
}

export interface ClaimedTimer extends TimerClaim {
  readonly kind: string
  readonly due: Date
  readonly run?: string
  readonly approval?: string
  readonly data: JsonObject
}

/** Timers are set, and mostly ended, along with what they belong to: see RunEffects and ApprovalStore. */
export interface TimerStore {
  /** The earliest of those that are due and that nobody holds, for this long. Two who ask never get the same one. */
  claim(limit: number, leaseMillis: number): Promise<readonly ClaimedTimer[]>
  /** Removes the timer. False when it is gone or another has it. */
  done(timer: TimerClaim): Promise<boolean>
  /** Gives it back, due again then. False when it is gone or another has it. */
  release(timer: TimerClaim, due: When): Promise<boolean>
}
