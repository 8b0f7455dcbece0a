import type { Path } from '#kernel/issues.ts'
import { parseTemplate } from '#kernel/template.ts'

const maxTextLength = 64 * 1024

/** Every `$name$` in the texts of a document, wherever they stand. */
export function templateKeysIn(document: unknown): ReadonlySet<string> {
  const names = new Set<string>()
  const pending: unknown[] = [document]
  while (pending.length > 0) {
    const value = pending.pop()
    if (typeof value === 'string') {
      for (const name of keysOf(value)) names.add(name)
    } else if (typeof value === 'object' && value !== null) {
      pending.push(...Object.values(value))
    }
  }
  return names
}

/** Where a text first has `$name$`; undefined where none has. */
export function templateKeyPlace(document: unknown, name: string): Path | undefined {
  const pending: { readonly value: unknown; readonly path: Path }[] = [{ value: document, path: [] }]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { value, path } = next
    if (typeof value === 'string' && keysOf(value).includes(name)) return path
    if (typeof value !== 'object' || value === null) continue
    const parts = Object.entries(value).map(([key, part]) => ({
      value: part,
      path: [...path, Array.isArray(value) ? Number(key) : key],
    }))
    pending.push(...parts.reverse())
  }
  return undefined
}

/** A text that is longer than a template can be is none. */
const keysOf = (text: string): readonly string[] =>
  text.length > maxTextLength ? [] : parseTemplate(text, { keys: true, attributes: true }).keys
