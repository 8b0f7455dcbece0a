import type { RunChange } from '#workflows/record/run.ts'

export interface RunListener {
  /** Called with the runs that changed; `complete` is false if more changed than could be read. */
  changed(changes: readonly RunChange[], complete: boolean): void
  /** The gateway shuts down, and nothing follows. */
  ended(): void
}

/** Announces changes of stored runs, about a second after their commit. Returns the function that ends it. */
export type ListenToRuns = (listener: RunListener) => () => void
