import type { JsonObject } from '#kernel/json.ts'
import type { When } from '#kernel/time.ts'

/** Something that is due later, even if the process that set it has died. */
export interface NewTimer {
  /** Unique; chosen by the caller. */
  readonly id: string
  readonly kind: string
  readonly due: When
  readonly run?: string
  /** The timer is deleted when this approval is decided. */
  readonly approval?: string
  readonly data?: JsonObject
}

/** The right to act on a timer. Void once the lease has expired and another worker has claimed the timer. */
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
