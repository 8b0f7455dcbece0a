import { IllegalArgumentException } from './java-exception.ts'
import { javaText, javaValue, TextValue } from './java-value.ts'

/** org.joda.time.DateTimeZone. Times are shown in UTC, so that is the only zone. */
export const DateTimeZone = { UTC: 'UTC' }

/** A text without a zone is in UTC, like everything else here. */
const withoutZone = /^\d{4}-\d{2}-\d{2}T[\d:.]+$/

/** org.joda.time.DateTime, in UTC. */
export class DateTime extends TextValue {
  readonly #millis: number

  /** Now, or from milliseconds, an ISO 8601 text or another DateTime. */
  constructor(source?: unknown, _zone?: unknown) {
    super()
    this.#millis = millisOf(javaValue(source))
    if (Number.isNaN(new Date(this.#millis).getTime()))
      throw new IllegalArgumentException(`Invalid format: "${javaText(source)}"`)
  }

  static now(_zone?: unknown): DateTime {
    return new DateTime()
  }

  static parse(text: unknown): DateTime {
    return new DateTime(javaText(text))
  }

  getMillis(): number {
    return this.#millis
  }

  isBeforeNow(): boolean {
    return this.#millis < Date.now()
  }

  isAfterNow(): boolean {
    return this.#millis > Date.now()
  }

  isBefore(other: unknown): boolean {
    return this.#millis < millisOf(javaValue(other))
  }

  isAfter(other: unknown): boolean {
    return this.#millis > millisOf(javaValue(other))
  }

  plusSeconds(count: unknown): DateTime {
    return new DateTime(this.#millis + Number(count) * 1000)
  }

  plusMinutes(count: unknown): DateTime {
    return this.plusSeconds(Number(count) * 60)
  }

  plusHours(count: unknown): DateTime {
    return this.plusMinutes(Number(count) * 60)
  }

  plusDays(count: unknown): DateTime {
    return this.plusHours(Number(count) * 24)
  }

  minusSeconds(count: unknown): DateTime {
    return this.plusSeconds(-Number(count))
  }

  minusMinutes(count: unknown): DateTime {
    return this.plusMinutes(-Number(count))
  }

  minusHours(count: unknown): DateTime {
    return this.plusHours(-Number(count))
  }

  minusDays(count: unknown): DateTime {
    return this.plusDays(-Number(count))
  }

  withZone(_zone: unknown): DateTime {
    return this
  }

  override toString(): string {
    return new Date(this.#millis).toISOString()
  }
}

function millisOf(value: unknown): number {
  if (value === null) return Date.now()
  if (value instanceof DateTime) return value.getMillis()
  if (typeof value === 'number') return value
  const text = javaText(value)
  return Date.parse(withoutZone.test(text) ? `${text}Z` : text)
}

/** java.util.Date, as DateUtils returns it. */
export class JavaDate {
  readonly #millis: number

  constructor(millis: number) {
    this.#millis = millis
  }

  getTime(): number {
    return this.#millis
  }
}

/** Between 1601 and 1970. */
const intervalOffset = 11_644_473_600_000

/** org.apache.directory.api.util.DateUtils. */
export const DateUtils = {
  /** Of Active Directory's times, such as `pwdLastSet`: 100 nanoseconds each, since 1601. */
  convertIntervalDate(text: unknown): JavaDate {
    const given = javaText(text)
    if (!/^\d{1,19}$/.test(given)) throw new IllegalArgumentException(`Invalid interval: "${given}"`)
    return new JavaDate(Number(BigInt(given) / 10_000n) - intervalOffset)
  },
}
