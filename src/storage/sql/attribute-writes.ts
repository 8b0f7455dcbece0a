import type { UserChange } from '#identity/user-directory.ts'
import type { SqlTransaction } from '#storage/client/sql-client.ts'
import { foldKey } from '#storage/client/text-keys.ts'
import { type AttributeChange, attributeChange } from '#storage/sql/attribute-changes.ts'
import { checkAttributes, valueColumns } from '#storage/sql/entry-values.ts'
import { deleteValues, holdValues, insertValues, type LockedEntry } from '#storage/sql/entry-writes.ts'
import { heldByKey, writeHeld } from '#storage/sql/held-values.ts'

/** Brings attributes of an entry to the given values; with `addOnly`, none goes away. What changed, for the audit. */
export async function syncAttributes(
  tx: SqlTransaction,
  entry: LockedEntry,
  collection: number,
  attributes: ReadonlyMap<string, readonly string[]>,
  addOnly: boolean,
): Promise<UserChange[]> {
  if (attributes.size === 0) return []
  const stored = heldByKey(entry.held)
  const outcome = new Map(Array.from(stored.values(), ({ name, values }) => [name, values]))
  const changed: AttributeChange[] = []
  for (const [key, { name, values }] of byFoldedName(attributes)) {
    const known = stored.get(key)
    const change = attributeChange(known?.name ?? name, known?.values ?? [], values, addOnly)
    if (change === undefined) continue
    changed.push(change)
    outcome.set(change.name, change.values)
    if (known !== undefined) await deleteValues(tx, entry.pk, name)
  }
  if (changed.length === 0) return []
  checkAttributes(outcome)
  const rows = changed.flatMap(({ name, values }) => valueColumns(name, values))
  await insertValues(tx, entry.pk, collection, rows)
  await holdValues(tx, entry.pk, writeHeld(outcome))
  return changed.flatMap(({ changes }) => changes)
}

/** Names that differ in letter case only are one attribute with the values of both. */
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
