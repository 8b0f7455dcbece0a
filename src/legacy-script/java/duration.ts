/** java.time.Duration, to the millisecond. */
export class Duration {
  readonly #millis: number

  constructor(millis: number) {
    this.#millis = millis
  }

  static ofMillis(millis: unknown): Duration {
    return new Duration(Number(millis))
  }

  static ofSeconds(seconds: unknown): Duration {
    return new Duration(Number(seconds) * 1000)
  }

  static ofMinutes(minutes: unknown): Duration {
    return new Duration(Number(minutes) * 60_000)
  }

  toMillis(): number {
    return this.#millis
  }
}
