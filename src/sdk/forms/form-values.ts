import { type FormAttribute, maxValueLength } from './form-attribute.ts'

/** The values of a form after the form's own rules, without uniqueness and value sources. */
export interface CheckedForm {
  /** By attribute name, without absent and empty values. */
  readonly values: ReadonlyMap<string, string>
  /** For users: all problems, in the order of the fields. */
  readonly errors: readonly string[]
  /** The fields whose value broke a rule; they need no further checks. */
  readonly wrong: ReadonlySet<string>
}

/** The values that the server gives to fields that users cannot set; undefined if it has none. */
type ServerValues = (attribute: FormAttribute) => string | undefined

/**
 * Builds the values from the fields alone: a posted name that isn't a field is an error, and so is another value for a
 * field that the server sets. Typed text is normalized (NFC), so that equal-looking texts are equal. An empty text is
 * an absent value; rules other than `required` only apply to present values.
 */
export function checkForm(
  attributes: readonly FormAttribute[],
  posted: Readonly<Record<string, string>>,
  serverValues: ServerValues = () => undefined,
): CheckedForm {
  const values = new Map<string, string>()
  const errors: string[] = []
  const wrong = new Set<string>()
  const known = new Set(attributes.map(({ name }) => name))
  for (const name of Object.keys(posted)) {
    if (!known.has(name)) errors.push(`Invalid attribute ${shown(name)}`)
  }
  for (const attribute of attributes) {
    const { name } = attribute
    const written = Object.hasOwn(posted, name) ? (posted[name] ?? '') : ''
    const given = isTyped(attribute) ? written.normalize('NFC') : written
    const kept = isServerSet(attribute) ? (serverValues(attribute) ?? attribute.preset ?? '') : undefined
    const value = kept ?? given
    const messages =
      kept !== undefined && given !== '' && given !== kept && given !== kept.normalize('NFC')
        ? [`${attribute.displayName} cannot be changed`]
        : checkValue(attribute, value)
    if (messages.length > 0) wrong.add(name)
    else if (value !== '') values.set(name, value)
    errors.push(...messages)
  }
  return { values, errors, wrong }
}

/** Only the server gives such a field its value. */
export const isServerSet = ({ readOnly, show }: FormAttribute): boolean => readOnly || !show

/** A value from a list is stored exactly as in the list. */
const isTyped = ({ items, source }: FormAttribute): boolean => items.length === 0 && source === undefined

/** The problems of one value, for users; empty if there are none. An empty text is an absent value. */
export function checkValue(attribute: FormAttribute, value: string): string[] {
  const { displayName, required, minChars, maxChars, items, pattern, patternMessage } = attribute
  if (value.trim() === '') {
    if (required) return [`${displayName} is required`]
    return value === '' ? [] : [`${displayName} has only spaces`]
  }
  if (value.length > maxValueLength)
    return [`${displayName} must have at most ${maxChars || maxValueLength} characters`]
  if (!isKeepable(attribute, value)) return [`${displayName} has characters that cannot be used`]
  const errors: string[] = []
  const length = Array.from(value).length
  if (length < minChars) errors.push(`${displayName} must have at least ${minChars} characters`)
  if (maxChars > 0 && length > maxChars) errors.push(`${displayName} must have at most ${maxChars} characters`)
  if (items.length > 0 && !items.some((item) => item.value === value)) {
    errors.push(`${displayName} has a value that is not in the list`)
  }
  if (pattern !== undefined && !pattern.matches(value)) errors.push(patternMessage)
  return errors
}

/** One line, except for text areas, and without characters that a database cannot store. */
function isKeepable({ type }: FormAttribute, value: string): boolean {
  if (!value.isWellFormed()) return false
  return type === 'text-area' ? !/[^\P{Cc}\t\n\r]/u.test(value) : !/\p{Cc}/u.test(value)
}

const shown = (name: string): string => (/^[\w.-]{1,64}$/.test(name) ? name : '(unnamed)')
