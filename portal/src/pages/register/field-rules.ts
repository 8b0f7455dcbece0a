import type { FormAttributeView } from '#sdk/contract/forms.ts'
import type { MessageKey, Values } from '../../app/messages.ts'

/** A problem, as a message key or in the configuration's own words. */
export type Problem = { readonly key: MessageKey; readonly values?: Values } | { readonly text: string }

/** Whether the whole text matches a field's pattern; undefined while that is not known. */
export type Matches = (name: string, value: string) => boolean | undefined

/** Longer values are always rejected. */
const maxValueLength = 10_000

/** The most items of one answer; there may be more. */
export const mostItems = 1_000

/** A bare address that the gateway can write to. */
const address = /^[^\s\p{Cc}<>()[\],;:\\"@]{1,64}@[^\s\p{Cc}<>()[\],;:\\"@]{1,253}$/u
const maxAddressLength = 254

/** The gateway's own rules, except those that only it can check. Undefined without a problem. */
export function fieldProblem(
  field: FormAttributeView,
  value: string,
  isAddress: boolean,
  matches: Matches,
): Problem | undefined {
  const { name, required, minChars = 0, maxChars = 0, values, type, regExFailedMsg } = field
  if (value.trim() === '') {
    if (required || isAddress) return { key: 'register.required' }
    return value === '' ? undefined : { key: 'register.onlySpaces' }
  }
  const most = maxChars === 0 ? maxValueLength : maxChars
  const length = Array.from(value).length
  if (value.length > maxValueLength) return { key: 'register.tooLong', values: { most } }
  if (!isKeepable(type, value)) return { key: 'register.badCharacters' }
  if (length < minChars) return { key: 'register.tooShort', values: { least: minChars } }
  if (length > most) return { key: 'register.tooLong', values: { most } }
  if (isChosenOnly(field) && !values.some((item) => item.value === value)) return { key: 'register.notInList' }
  if (matches(name, value) === false) {
    return regExFailedMsg === undefined ? { key: 'register.noMatch' } : { text: regExFailedMsg }
  }
  if (isAddress && (value.length > maxAddressLength || !address.test(value))) return { key: 'register.noAddress' }
  return undefined
}

/** Whether the whole list is known here; a searchable one may have more items. */
const isChosenOnly = ({ values }: FormAttributeView): boolean => values.length > 0 && values.length < mostItems

/** One line, except for text areas. */
const isKeepable = (type: FormAttributeView['type'], value: string): boolean =>
  value.isWellFormed() && (type === 'text-area' ? !/[^\P{Cc}\t\n\r]/u.test(value) : !/\p{Cc}/u.test(value))
