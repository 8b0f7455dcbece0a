import type { JsonObject } from '#kernel/json.ts'

/** A call that may come again and is to be answered as the first time. */
export interface IdempotencyKey {
  /** Who calls what: keys of different callers have nothing to do with each other. */
  readonly scope: string
  readonly key: string
}

export interface IdempotentCall extends IdempotencyKey {
  /** What was asked; another body under the same key is a mistake of the caller. */
  readonly bodyHash: string
  /** The run that the call starts. */
  readonly run: string
}

export type Reservation =
  | { readonly kind: 'reserved' }
  /** Asked before: which run it was, and what was answered, once that is known. */
  | { readonly kind: 'repeated'; readonly run: string; readonly response?: JsonObject }
  /** The key was used for something else. */
  | { readonly kind: 'other-body' }

export interface IdempotentAnswer extends IdempotencyKey {
  readonly run: string
  readonly response: JsonObject
}

/**
 * A call that starts a stored run reserves its key in the same transaction: see RunStore.start. Here is what calls need
 * whose run is not stored.
 */
export interface IdempotencyStore {
  /**
   * For a call that is answered within the lease. When it was not, since the process died, the same body reserves the key
   * anew. Throws BAD_REQUEST for a key or scope of more than 500 characters.
   */
  reserve(call: IdempotentCall, leaseMillis: number): Promise<Reservation>
  /** False when the key is another run's by now. */
  answer(answer: IdempotentAnswer): Promise<boolean>
  /** Frees a key whose run did nothing. False when it was answered, or is another run's. */
  abandon(call: IdempotencyKey & { readonly run: string }): Promise<boolean>
  find(call: Omit<IdempotentCall, 'run'>): Promise<Reservation | undefined>
  /** Forgets calls from before then; how many. */
  prune(before: Date): Promise<number>
}
