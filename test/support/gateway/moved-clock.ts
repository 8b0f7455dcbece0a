import { renameSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

/** A clock for a gateway process, which differs from that of the machine. */
export class MovedClock {
  readonly #file: string
  /** For the process. */
  readonly environment: Readonly<Record<string, string>>

  constructor(folder: string, millis: number) {
    this.#file = join(folder, 'clock')
    writeFileSync(this.#file, String(millis))
    const preload = resolve('test/support/gateway/moved-clock-preload.ts')
    this.environment = { GATEHOUSE_TEST_CLOCK: this.#file, NODE_OPTIONS: `--import=${preload}` }
  }

  /** By how much it then differs from that of the machine. Resolves when the process has read it. */
  async move(millis: number): Promise<void> {
    writeFileSync(`${this.#file}.new`, String(millis))
    renameSync(`${this.#file}.new`, this.#file)
    await delay(50)
  }
}
