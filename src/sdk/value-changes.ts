import type { TargetChange } from '#sdk/target.ts'

/** What bringing an attribute from these values to those changes. With addOnly, nothing is taken away. */
export function changesOfValues(
  name: string,
  before: readonly string[],
  wanted: readonly string[],
  addOnly: boolean,
): TargetChange[] {
  const added = missingFrom(before, wanted)
  const removed = addOnly ? [] : missingFrom(wanted, before)
  const [value] = added
  if (value !== undefined && added.length === 1 && removed.length === 1 && wanted.length === 1) {
    return [change('attribute', 'replace', name, value)]
  }
  return [
    ...added.map((text) => change('attribute', 'add', name, text)),
    ...removed.map((text) => change('attribute', 'delete', name, text)),
  ]
}

export const change = (
  subject: TargetChange['subject'],
  action: TargetChange['action'],
  attribute: string,
  value: string,
): TargetChange => ({ subject, action, attribute, value })

/** Those of `wanted` that are not among `held`, each once. */
export function missingFrom(held: readonly string[], wanted: readonly string[]): string[] {
  const present = new Set(held)
  return [...new Set(wanted)].filter((value) => !present.has(value))
}
