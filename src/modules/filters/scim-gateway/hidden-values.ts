import type { SchemaMapping } from './schema-mapping.ts'

interface Values {
  /** As the target holds them. */
  readonly stored: readonly string[]
  /** As the mapping makes them of what clients see now, and of what they want. */
  readonly visible: readonly string[]
  readonly wanted: readonly string[]
}

/** What an internal attribute is to hold: the wanted values, then the stored ones that clients can't see. */
export function withHiddenValues(mapping: SchemaMapping, name: string, values: Values): readonly string[] {
  const { stored, wanted } = values
  return withKept(wanted, mapping.hidden(name, stored) ?? hiddenByLines(values))
}

/**
 * Mapping lines may show fewer values than the target stores. Where nothing is shown, or what is shown isn't what is
 * stored, the hidden values can't be known, and the wanted values replace all.
 */
function hiddenByLines({ stored, visible }: Values): readonly string[] {
  const held = new Set(stored)
  if (visible.length === 0 || !visible.every((value) => held.has(value))) return []
  const shown = new Set(visible)
  return stored.filter((value) => !shown.has(value))
}

/** Directories take values that differ in letter case only for the same one, so a wanted value stands for a kept one. */
function withKept(wanted: readonly string[], kept: readonly string[]): readonly string[] {
  if (kept.length === 0) return wanted
  const taken = new Set(wanted.map((value) => value.toLowerCase()))
  return [...wanted, ...kept.filter((value) => !taken.has(value.toLowerCase()))]
}
