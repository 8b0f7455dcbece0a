import type { RunWakeUp } from '#storage/run-wake-up.ts'

/** Tells the workers of this process, after the commit. Where there is one process only, nobody else need be told. */
export class InProcessWakeUp implements RunWakeUp {
  #wake: (() => void) | undefined

  async inTransaction(): Promise<void> {}

  committed(): void {
    this.#wake?.()
  }

  async start(wake: () => void): Promise<void> {
    this.#wake = wake
  }

  async close(): Promise<void> {
    this.#wake = undefined
  }
}
