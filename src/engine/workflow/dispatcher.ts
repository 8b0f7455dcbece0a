import type { Closable } from '#kernel/scope.ts'

/**
 * Tells workers that runs may be claimed. Only a wake-up call: it may come too often and it may be lost, since workers
 * also look by themselves. What is sent goes out with the transaction that makes the runs ready, or not at all.
 */
export interface Dispatcher extends Closable {
  /** Calls `wake` from now on. Settles when this process can be reached; a failure leaves the sweep of the workers. */
  start(wake: () => void): Promise<void>
}
