import type { DatabaseTransaction } from '#database/sql-client.ts'
import { ListStatement, RowInsert } from '#database/statement.ts'
import { assertStorable, foldKey, indexKey, isLong, isStorable, numberOf } from '#database/text-keys.ts'
import type { EntryChange } from '#identity/account-store.ts'
import type { Attributes } from '#identity/attributes.ts'
import { missingValues, valueChanges } from '#identity/entry-changes.ts'
import { directoryLimits } from '#identity/user-directory.ts'
import { type AttributeText, GatewayError } from '#kernel/errors.ts'
import { attributesByKey, type LockedEntry, replaceAttributes, storedAttributes } from './entries.ts'

/** A value of an attribute, indexed for searches. */
interface AttributeRow extends ValueRow {
  readonly entry: number
  readonly collection: number
}

export interface ValueRow {
  readonly nameKey: string
  readonly position: number
  readonly name: string
  readonly value: string
  /** The folded value, or the beginning of a long one. */
  readonly valueKey: string
  /** The folded value, if it is long. */
  readonly longKey: string | null
  readonly number: bigint | null
}

export const valueRows = (attributes: Iterable<readonly [string, readonly string[]]>): ValueRow[] =>
  Array.from(attributes, ([name, values]) => {
    const nameKey = foldKey(name)
    return values.map((value, position): ValueRow => {
      const folded = foldKey(value)
      const longKey = isLong(folded) ? folded : null
      return { nameKey, position, name, value, valueKey: indexKey(folded), longKey, number: numberOf(value) }
    })
  }).flat()

export async function insertValues(
  tx: DatabaseTransaction,
  entry: number,
  collection: number,
  values: readonly ValueRow[],
): Promise<void> {
  insertRows.run(
    tx,
    values.map((value) => ({ ...value, entry, collection })),
  )
}

/** Of any number of entries. */
export const insertRows = new RowInsert<AttributeRow>('attributes', [
  'entry',
  'nameKey',
  'position',
  'collection',
  'name',
  'value',
  'valueKey',
  'longKey',
  'number',
])
const deleteValues = new ListStatement<{ entry: number }, string>(
  `delete from attributes where entry = :entry and name_key in (:list)`,
)

/**
 * Changes the attributes of an entry to the given values; with `addOnly`, it removes none. Letter case and order
 * count. Returns the changes; if there are any, the entry has a new version.
 */
export async function syncAttributes(
  tx: DatabaseTransaction,
  entry: LockedEntry,
  collection: number,
  attributes: ReadonlyMap<string, readonly string[]>,
  { addOnly, now }: { readonly addOnly: boolean; readonly now: number },
): Promise<EntryChange[]> {
  if (attributes.size === 0) return []
  const stored = attributesByKey(entry.attributes)
  const outcome = new Map(Array.from(stored.values(), ({ name, values }) => [name, values]))
  const changed: [name: string, values: readonly string[]][] = []
  const former: string[] = []
  const changes: EntryChange[] = []
  for (const [key, { name: givenName, values: wanted }] of byFoldedName(attributes)) {
    const known = stored.get(key)
    const { name, values: before } = known ?? { name: givenName, values: [] }
    const values = addOnly ? [...before, ...missingValues(before, wanted)] : wanted
    const ofAttribute = valueChanges(name, before, values, { ordered: true })
    if (ofAttribute.length === 0) continue
    changes.push(...ofAttribute)
    changed.push([name, values])
    outcome.set(name, values)
    if (known !== undefined) former.push(key)
  }
  if (changes.length === 0) return []
  checkAttributes(outcome)
  await deleteValues.run(tx, { entry: entry.pk }, former)
  await insertValues(tx, entry.pk, collection, valueRows(changed))
  await replaceAttributes.run(tx, { pk: entry.pk, attributes: storedAttributes(outcome), now })
  return changes
}

/** Names that differ only in letter case are one attribute with the values of both. */
function byFoldedName(
  attributes: ReadonlyMap<string, readonly string[]>,
): Map<string, { name: string; values: readonly string[] }> {
  const merged = new Map<string, { name: string; values: readonly string[] }>()
  for (const [name, values] of attributes) {
    const key = foldKey(name)
    const known = merged.get(key)
    merged.set(key, known === undefined ? { name, values } : { name: known.name, values: [...known.values, ...values] })
  }
  return merged
}

const refuse = (publicText: string): never => {
  throw new GatewayError('BAD_REQUEST', publicText, { publicText })
}

const refuseValue = (attribute: string, publicText: AttributeText): never => {
  throw new GatewayError('BAD_REQUEST', publicText(), { attribute, publicText })
}

/** For a login, a group's name or an attribute's name. */
export function checkName(what: string, name: string): void {
  if (name === '') refuse(`The ${what} is empty.`)
  if (Buffer.byteLength(name) > directoryLimits.nameBytes) refuse(`The ${what} is too long.`)
  assertStorable(what, name)
}

/** For a list of logins or group names. Returns them without repetition, by folded name. */
export function checkNames(what: string, names: readonly string[]): Map<string, string> {
  const byKey = new Map<string, string>()
  for (const name of names) {
    checkName(what, name)
    const key = foldKey(name)
    if (!byKey.has(key)) byKey.set(key, name)
  }
  if (byKey.size > directoryLimits.memberships) refuse('There are too many memberships.')
  return byKey
}

export function checkAttributes(attributes: Attributes | ReadonlyMap<string, readonly string[]>): void {
  if (attributes.size > directoryLimits.attributes) refuse('There are too many attributes.')
  for (const [name, values] of attributes) {
    checkName('attribute name', name)
    if (values.length > directoryLimits.valuesPerAttribute) {
      refuseValue(name, (shown = `The attribute ${name}`) => `${shown} has too many values.`)
    }
    for (const value of values) {
      // A UTF-16 unit takes at most three bytes, so most values need no counting.
      const isTooLong =
        value.length * 3 > directoryLimits.valueBytes && Buffer.byteLength(value) > directoryLimits.valueBytes
      if (isTooLong) refuseValue(name, (shown = `the attribute ${name}`) => `A value of ${shown} is too long.`)
      if (!isStorable(value)) {
        refuseValue(name, (shown = name) => `The value of ${shown} holds a character that cannot be stored.`)
      }
    }
  }
}
