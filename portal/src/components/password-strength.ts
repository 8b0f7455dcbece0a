import type { PasswordRulesView } from '#features/registration/contract/register.ts'
import type { MessageKey, Values } from '../app/messages.ts'

/** A problem of a password, as a message key. */
export interface PasswordProblem {
  readonly key: MessageKey
  readonly values?: Values
}

/** From 0, which is easily guessed, to 4. */
export type Strength = 0 | 1 | 2 | 3 | 4

/** The bits at which the strength increases. */
const steps = [28, 45, 62, 80] as const

const pools: readonly (readonly [RegExp, number])[] = [
  [/[a-z]/, 26],
  [/[A-Z]/, 26],
  [/[0-9]/, 10],
  [/[ -/:-@[-`{-~]/, 33],
  [/[^ -~]/, 100],
]

/** A rough strength of a password: length and variety help; sequences, repetitions and the user's name do not. */
export function strengthOf(password: string, userValues: Iterable<string>): Strength {
  if (password === '' || repeatsValue(password, userValues)) return 0
  const pool = pools.reduce((sum, [pattern, size]) => sum + (pattern.test(password) ? size : 0), 0)
  const bits = surprises(password) * Math.log2(Math.max(2, pool))
  return steps.filter((step) => bits >= step).length as Strength
}

/** Counts characters that follow neither from the previous one, as in `aaaa` and `4321`, nor from the text so far. */
function surprises(password: string): number {
  const codes = Array.from(password.toLowerCase(), (character) => character.codePointAt(0) ?? 0)
  let count = 0
  for (const [i, code] of codes.entries()) {
    const before = codes[i - 1]
    const follows = before !== undefined && Math.abs(code - before) <= 1
    const isRepeated =
      i >= 3 &&
      codes
        .slice(0, i - 1)
        .join(' ')
        .includes(codes.slice(i - 1, i + 1).join(' '))
    count += follows || isRepeated ? 0.3 : 1
  }
  return count
}

/** Shorter values appear in many good passwords. */
const minRepeatedValue = 4

/** The gateway's own rule: the password is one of the values, or one of them with few other characters. */
export function repeatsValue(password: string, values: Iterable<string>): boolean {
  const folded = password.toLowerCase()
  for (const value of values) {
    for (const part of [value, value.split('@', 1)[0] ?? '']) {
      const own = part.toLowerCase()
      if (own.length >= minRepeatedValue && folded.includes(own) && folded.length - own.length < 4) return true
    }
  }
  return false
}

export function passwordProblem(
  password: string,
  rules: PasswordRulesView,
  userValues: Iterable<string>,
): PasswordProblem | undefined {
  const length = Array.from(password).length
  if (length === 0) return { key: 'register.required' }
  if (length < rules.minChars) return { key: 'register.tooShort', values: { least: rules.minChars } }
  if (length > rules.maxChars) return { key: 'register.tooLong', values: { most: rules.maxChars } }
  if (!password.isWellFormed() || password.includes('\0')) return { key: 'register.badCharacters' }
  if (repeatsValue(password, userValues)) return { key: 'register.passwordRepeats' }
  return undefined
}
