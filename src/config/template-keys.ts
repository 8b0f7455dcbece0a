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

/** A text that is longer than a template can be is none. */
const keysOf = (text: string): readonly string[] =>
  text.length > maxTextLength ? [] : parseTemplate(text, { keys: true, attributes: true }).keys
