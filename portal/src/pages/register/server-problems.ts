import type { FormAttributeView } from '#sdk/contract/forms.ts'

export interface ServerProblems {
  /** By the field's name, in the gateway's words. */
  readonly fields: ReadonlyMap<string, string>
  /** Problems of no field of the form. */
  readonly others: readonly string[]
}

/** Assigns the gateway's problems to the fields: its texts begin with the field's label. */
export function sortProblems(texts: readonly string[], fields: readonly FormAttributeView[]): ServerProblems {
  const found = new Map<string, string>()
  const others: string[] = []
  // The longest label first, so that "Name of the team" does not match "Name".
  const labels = fields.toSorted((a, b) => b.displayName.length - a.displayName.length)
  for (const text of texts) {
    const field = labels.find(
      ({ displayName, regExFailedMsg }) => text === regExFailedMsg || text.startsWith(`${displayName} `),
    )
    if (field === undefined) others.push(text)
    else if (!found.has(field.name)) found.set(field.name, text)
  }
  return { fields: found, others }
}
