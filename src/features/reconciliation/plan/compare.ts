import { createHash } from 'node:crypto'
import { missingNames } from '#identity/entry-changes.ts'
import { userIdName } from '#identity/mapping/mapped-value.ts'
import { isJsonObject, type JsonValue } from '#kernel/json.ts'
import type { ComparedEntry } from './compared-entry.ts'
import type { AttributeDifference, Difference } from './difference.ts'

/** How much of a value and of a list of values a plan has. What is cut off still counts: a plan has its hash. */
const longestValue = 500
const mostValues = 100

/**
 * What differs at the account from what it should have. Values of an attribute are a set; letter case counts, except in
 * the login and in names of groups. JSON is compared as JSON.
 */
export function compareEntries(
  wanted: ComparedEntry,
  account: ComparedEntry,
): Pick<Difference, 'attributes' | 'groups'> {
  const names = new Set([...Object.keys(wanted.attributes), ...Object.keys(account.attributes)])
  const attributes = Array.from(names).flatMap((name): AttributeDifference[] => {
    const [from, to] = [valuesOf(account, name), valuesOf(wanted, name)]
    return isSameSet(from, to) ? [] : [{ name, from: shownValues(from), to: shownValues(to) }]
  })
  const isRenamed = wanted.login.toLowerCase() !== account.login.toLowerCase()
  const login = { name: userIdName, from: [account.login], to: [wanted.login] }
  return {
    attributes: isRenamed ? [login, ...attributes] : attributes,
    groups: {
      add: missingNames(account.groups, wanted.groups),
      remove: missingNames(wanted.groups, account.groups),
    },
  }
}

export const valuesOf = ({ attributes }: ComparedEntry, name: string): readonly string[] =>
  Object.hasOwn(attributes, name) ? (attributes[name] ?? []) : []

function isSameSet(some: readonly string[], others: readonly string[]): boolean {
  if (some.length === 1 && others.length === 1 && some[0] === others[0]) return true
  const [first, second] = [some, others].map((values) => new Set(values.map(comparable)))
  return first !== undefined && second !== undefined && first.symmetricDifference(second).size === 0
}

/** Systems write the same JSON with other spaces and another order of members. */
function comparable(text: string): string {
  if (!/^\s*[{[]/.test(text)) return text
  try {
    return JSON.stringify(JSON.parse(text), sortedMembers)
  } catch {
    return text
  }
}

function sortedMembers(_: string, value: JsonValue): JsonValue {
  if (!isJsonObject(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** Bounded texts, sorted, that differ where the values do. */
function shownValues(values: readonly string[]): readonly string[] {
  const shown = [...new Set(values)].sort().map(shownValue)
  if (shown.length <= mostValues) return shown
  return [...shown.slice(0, mostValues), `… and ${shown.length - mostValues} more (${digest(JSON.stringify(shown))})`]
}

const shownValue = (value: string): string =>
  value.length <= longestValue
    ? value
    : `${value.slice(0, longestValue).toWellFormed()}… (${value.length} characters, ${digest(value)})`

const digest = (text: string): string => `SHA-256 ${createHash('sha256').update(text).digest('hex').slice(0, 16)}`
