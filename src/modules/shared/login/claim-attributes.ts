import { Attributes } from '#identity/attributes.ts'

/**
 * A token's claims as attributes: texts and lists of texts as they are, numbers and booleans as text, and anything
 * deeper as JSON text. Undefined when two claims differ in letter case only, since attributes do not tell them apart
 * and one would pass for the other.
 */
export function claimAttributes(claims: Readonly<Record<string, unknown>>): Attributes | undefined {
  const attributes = new Attributes()
  const seen = new Set<string>()
  for (const [name, value] of Object.entries(claims)) {
    const key = name.toLowerCase()
    if (seen.has(key)) return undefined
    seen.add(key)
    attributes.set(name, Array.isArray(value) ? value.flatMap(claimText) : claimText(value))
  }
  return attributes
}

function claimText(value: unknown): string[] {
  if (value === null || value === undefined) return []
  return [typeof value === 'string' ? value : JSON.stringify(value)]
}
