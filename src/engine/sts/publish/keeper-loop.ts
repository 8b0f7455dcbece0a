import type { TokenKeyRings } from '#engine/keys/token-key-rings.ts'
import type { KeyKeeper } from '#engine/sts/publish/key-keeper.ts'
import type { Logger } from '#kernel/logger.ts'
import type { Closable } from '#kernel/scope.ts'
import type { TokenIssuer } from '#sdk/sts/token-keys.ts'

export interface KeeperLoopOptions {
  readonly keeper: Pick<KeyKeeper, 'pass'>
  readonly rings: Pick<TokenKeyRings, 'issuers'>
  readonly log: Logger
  readonly everyMillis?: number
}

/** Endpoints that are looked after at the same time. */
const lanes = 4

/** Keeps the keys of all configured endpoints: at start, when it is woken, and every few seconds. */
export class KeeperLoop implements Closable {
  readonly #options: Required<KeeperLoopOptions>
  #timer: NodeJS.Timeout | undefined
  #round: Promise<void> | undefined
  #again = false
  readonly #stop = new AbortController()

  constructor({ keeper, rings, log, everyMillis = 15_000 }: KeeperLoopOptions) {
    this.#options = { keeper, rings, log, everyMillis }
  }

  start(): void {
    this.wake()
  }

  /** Such as after a change of the configuration. */
  wake(): void {
    if (this.#stop.signal.aborted) return
    clearTimeout(this.#timer)
    if (this.#round !== undefined) {
      this.#again = true
      return
    }
    this.#again = false
    this.#round = this.#all().finally(() => {
      this.#round = undefined
      if (this.#stop.signal.aborted) return
      this.#timer = setTimeout(() => this.wake(), this.#again ? 0 : this.#options.everyMillis)
    })
  }

  /** What is being written is given up, and written at the next start. */
  async close(): Promise<void> {
    this.#stop.abort()
    clearTimeout(this.#timer)
    await this.#round
  }

  async #all(): Promise<void> {
    const waiting = [...this.#options.rings.issuers]
    await Promise.all(Array.from({ length: lanes }, () => this.#lane(waiting)))
  }

  async #lane(waiting: TokenIssuer[]): Promise<void> {
    const { signal } = this.#stop
    for (let issuer = waiting.shift(); issuer !== undefined && !signal.aborted; issuer = waiting.shift()) {
      const { endpoint } = issuer
      await this.#options.keeper.pass(issuer, false, signal).then(
        () => {},
        (error: unknown) =>
          this.#options.log.error('the keys of an endpoint were not looked after', { endpoint, error }),
      )
    }
  }
}
