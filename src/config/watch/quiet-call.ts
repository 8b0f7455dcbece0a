interface QuietCallOptions {
  /** Time without requests before the call. */
  readonly quietMillis: number
  /** Maximum delay of a request. */
  readonly mostQuietMillis: number
  onError(error: unknown): void
}

/** Makes one call for a burst of requests, never two at a time. A request during a call leads to another call after it. */
export class QuietCall {
  readonly #work: () => Promise<void>
  readonly #options: QuietCallOptions
  #firstRequest: number | undefined
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | undefined
  #isClosed = false

  constructor(work: () => Promise<void>, options: QuietCallOptions) {
    this.#work = work
    this.#options = options
  }

  request(): void {
    if (this.#isClosed) return
    this.#firstRequest ??= performance.now()
    if (this.#running === undefined) this.#wait(this.#firstRequest)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await this.#running
  }

  #wait(since: number): void {
    const { quietMillis, mostQuietMillis } = this.#options
    const left = Math.max(0, since + mostQuietMillis - performance.now())
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#call(), Math.min(quietMillis, left))
    this.#timer.unref()
  }

  #call(): void {
    this.#firstRequest = undefined
    this.#running = this.#work()
      .catch(this.#options.onError)
      .finally(() => {
        this.#running = undefined
        if (!this.#isClosed && this.#firstRequest !== undefined) this.#wait(this.#firstRequest)
      })
  }
}
