import type { Parameter, ParameterOptions } from '#sdk/module/parameters.ts'

type Required = ParameterOptions & { readonly required: true }
type Defaulted<T> = ParameterOptions & { readonly fallback: T }

export function text(options: Required | Defaulted<string>): Parameter<string>
export function text(options: ParameterOptions): Parameter<string | undefined>
export function text(options: ParameterOptions & { readonly fallback?: string }): Parameter<string | undefined> {
  const fallback = options.fallback ?? (options.required === true ? '' : undefined)
  return { ...options, type: 'text', many: false, fallback, read: ([value]) => value ?? fallback }
}

/** Any number of values, from a YAML list or a repeated name. */
export function list(options: ParameterOptions): Parameter<readonly string[]> {
  return { ...options, type: 'list', many: true, fallback: [], read: (values) => values }
}

/** `"true"` or `"false"`, in any letter case. */
export function flag(options: ParameterOptions & { readonly fallback?: boolean }): Parameter<boolean> {
  const fallback = options.fallback ?? false
  return {
    ...options,
    type: 'flag',
    many: false,
    fallback,
    read: ([value = ''], report) => {
      const word = value.toLowerCase()
      if (word === 'true' || word === 'false') return word === 'true'
      report(`must be "true" or "false", not "${value}"`)
      return fallback
    },
  }
}

export function wholeNumber(
  options: ParameterOptions & { readonly fallback: number; readonly min?: number; readonly max?: number },
): Parameter<number> {
  const { fallback, min = 0, max = Number.MAX_SAFE_INTEGER } = options
  return {
    ...options,
    type: 'number',
    many: false,
    fallback,
    read: ([value = ''], report) => {
      const number = /^-?\d{1,15}$/.test(value) ? Number(value) : Number.NaN
      if (number >= min && number <= max) return number
      report(`must be a whole number from ${min} to ${max}, not "${value}"`)
      return fallback
    },
  }
}

export function choice<const T extends string>(
  words: readonly T[],
  options: ParameterOptions & { readonly fallback: T },
): Parameter<T>
/** Without a fallback, an absent parameter is undefined. */
export function choice<const T extends string>(
  words: readonly T[],
  options: ParameterOptions & { readonly fallback: undefined },
): Parameter<T | undefined>
export function choice<const T extends string>(
  words: readonly T[],
  options: ParameterOptions & { readonly fallback: T | undefined },
): Parameter<T | undefined> {
  return {
    ...options,
    type: `one of ${words.join(', ')}`,
    many: false,
    read: ([value = ''], report) => {
      const word = words.find((candidate) => candidate === value)
      if (word === undefined) report(`must be one of ${words.join(', ')}, not "${value}"`)
      return word ?? options.fallback
    },
  }
}

/** A text with a syntax of its own; `parse` throws an Error whose message says what is wrong with it. */
export function parsed<T>(
  type: string,
  parse: (value: string) => T,
  options: ParameterOptions,
): Parameter<T | undefined> {
  return {
    ...options,
    type,
    many: false,
    fallback: undefined,
    read: ([value = ''], report) => {
      try {
        return parse(value)
      } catch (error) {
        report(error instanceof Error ? error.message : String(error))
        return undefined
      }
    },
  }
}
