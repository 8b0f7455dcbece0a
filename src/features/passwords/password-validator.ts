import type { Attributes } from '#identity/attributes.ts'
import type { Issues } from '#kernel/issues.ts'
import type { Params } from '#sdk/module/params.ts'

/** OpenUnison's rules for the characters of a password, on top of the length. */
export interface PasswordValidator {
  readonly minChars: number
  readonly maxChars: number
  /** For the user; empty if the password is accepted. */
  problems(password: string, user: Attributes): readonly string[]
}

const classes = [
  { name: 'requireLower', pattern: /\p{Ll}/u, what: 'a lowercase letter' },
  { name: 'requireUpper', pattern: /\p{Lu}/u, what: 'an uppercase letter' },
  { name: 'requireNumber', pattern: /\p{Nd}/u, what: 'a number' },
  { name: 'requireSpecial', pattern: /[^\p{L}\p{Nd}]/u, what: 'a special character' },
] as const

const packageName = 'com.tremolosecurity.scalejs.password.validators.'
const basicNames = ['minChars', 'maxChars', 'minRequirements', ...classes.map(({ name }) => name)]
const known: Readonly<Record<string, readonly string[]>> = {
  BasicValidator: basicNames,
  ActiveDirectoryValidator: [...basicNames, 'attributesToCheck'],
}

const defaultMinChars = 8
const defaultMaxChars = 128
const longest = 1_000
/** As many characters in a row of a user's value are not accepted. */
const repeatedChars = 3

/**
 * The validator of `validatorClassName` with its `validator.params`, each as `name=value`. A rule that is written is
 * enforced. Without `minRequirements`, rules that are not written are not; with "0" all of them are; with another
 * number at least so many.
 */
export function readValidator(
  className: string,
  lines: readonly string[],
  params: Params,
  issues: Issues,
): PasswordValidator {
  const names = known[className.startsWith(packageName) ? className.slice(packageName.length) : className]
  if (names === undefined && className !== '') {
    const all = Object.keys(known).join(' and ')
    issues.error(
      params.pathOf('validatorClassName'),
      `"validatorClassName": no validator "${className}"; there are ${all}`,
    )
  }
  const given = new Map<string, string[]>()
  for (const [i, line] of lines.entries()) {
    const equals = line.indexOf('=')
    const name = line.slice(0, Math.max(equals, 0)).trim()
    if (names !== undefined && !names.includes(name)) {
      const message = `must be name=value with ${names.join(', ')}, not "${line}"`
      issues.error(params.pathOf('validator.params', i), `"validator.params": ${message}`)
    }
    given.set(name, [...(given.get(name) ?? []), line.slice(equals + 1).trim()])
  }
  const report = (name: string, what: string): void => {
    const message = `"${name}" must be ${what}, not "${given.get(name)?.[0]}"`
    issues.error(params.pathOf('validator.params'), `"validator.params": ${message}`)
  }
  const number = (name: string, fallback: number, max: number): number => {
    const written = given.get(name)?.[0]
    if (written === undefined) return fallback
    if (/^\d{1,4}$/.test(written) && Number(written) <= max) return Number(written)
    report(name, `a whole number from 0 to ${max}`)
    return fallback
  }
  const least = given.has('minRequirements') ? number('minRequirements', 0, classes.length) : undefined
  const required = classes.filter(({ name }) => {
    const written = given.get(name)?.[0]?.toLowerCase()
    if (written !== undefined && written !== 'true' && written !== 'false') report(name, 'true or false')
    return written === undefined ? least === 0 : written === 'true' && (least ?? 0) === 0
  })
  const counted = classes.filter(({ name }) => given.get(name)?.[0]?.toLowerCase() !== 'false')
  const minChars = number('minChars', defaultMinChars, longest)
  const maxChars = number('maxChars', defaultMaxChars, longest)
  if (minChars > maxChars) report('minChars', `at most the ${maxChars} of "maxChars"`)
  const checked = (given.get('attributesToCheck') ?? []).map((line) => {
    const equals = line.indexOf('=')
    return { label: line.slice(0, Math.max(equals, 0)), attribute: line.slice(equals + 1) }
  })
  return {
    minChars,
    maxChars,
    problems: (password, user) => [
      ...required.flatMap(({ pattern, what }) => (pattern.test(password) ? [] : [`The password needs ${what}`])),
      ...tooFew(password, least ?? 0, counted),
      ...checked.flatMap(({ label, attribute }) =>
        repeats(password, user.first(attribute) ?? '')
          ? [`The password must not have ${repeatedChars} characters in a row of your ${label || attribute}`]
          : [],
      ),
    ],
  }
}

function tooFew(password: string, least: number, counted: readonly (typeof classes)[number][]): string[] {
  const found = counted.filter(({ pattern }) => pattern.test(password)).length
  if (found >= least) return []
  return [`The password needs at least ${least} of: ${counted.map(({ what }) => what).join(', ')}`]
}

/** Values are bounded by the directory; a password by `maxChars`. */
function repeats(password: string, value: string): boolean {
  const [folded, known] = [password.toLowerCase(), value.toLowerCase().slice(0, longest)]
  for (let at = 0; at + repeatedChars <= known.length; at++) {
    if (folded.includes(known.slice(at, at + repeatedChars))) return true
  }
  return false
}
