import { NumberFormatException } from './java-exception.ts'
import { javaText } from './java-value.ts'

const maxInteger = 2_147_483_647

/** java.lang.Integer. */
export const Integer = {
  MAX_VALUE: maxInteger,
  MIN_VALUE: -2_147_483_648,

  parseInt(source: unknown, radix: unknown = 10): number {
    return wholeNumber(source, Number(radix), maxInteger)
  },

  valueOf(source: unknown): number {
    return wholeNumber(source, 10, maxInteger)
  },

  toString(value: unknown): string {
    return javaText(value)
  },
}

/** java.lang.Long. What JavaScript cannot count to is refused. */
export const Long = {
  parseLong(source: unknown): number {
    return wholeNumber(source, 10, Number.MAX_SAFE_INTEGER)
  },

  valueOf(source: unknown): number {
    return wholeNumber(source, 10, Number.MAX_SAFE_INTEGER)
  },

  toString(value: unknown): string {
    return javaText(value)
  },
}

/** java.lang.Boolean. */
export const JavaBoolean = {
  TRUE: true,
  FALSE: false,

  parseBoolean(source: unknown): boolean {
    return javaText(source).toLowerCase() === 'true'
  },

  valueOf(source: unknown): boolean {
    return JavaBoolean.parseBoolean(source)
  },
}

function wholeNumber(source: unknown, radix: number, limit: number): number {
  const text = javaText(source)
  const digits = /^[+-]?[0-9a-z]+$/i.test(text) ? text.replace(/^[+-]/, '').toLowerCase() : ''
  const valid = digits !== '' && [...digits].every((digit) => Number.parseInt(digit, 36) < radix)
  const value = valid ? Number.parseInt(text, radix) : Number.NaN
  if (value <= limit && value >= -limit - 1) return value
  throw new NumberFormatException(`For input string: "${text}"`)
}
