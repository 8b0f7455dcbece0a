/** A place for values in a template: `{name}`, `{name*}` for all values, `{name:boolean}` and `{name:number}`. */
export interface Place {
  readonly name: string
  /** Every value, rather than the only one. */
  readonly all: boolean
  readonly as: 'text' | 'boolean' | 'number'
}

export type TemplatePart = string | Place

const token = /\{\{|\}\}|\{[^{}]*\}|[{}]/g
const placeForm = /^\{([A-Za-z_][\w.-]{0,127})(\*)?(?::(boolean|number))?\}$/

/** Texts and places in order; `{{` and `}}` are braces. Throws an Error for a brace that is neither. */
export function parseParts(text: string): TemplatePart[] {
  const parts: TemplatePart[] = []
  let literal = ''
  let at = 0
  const flush = (): void => {
    if (literal !== '') parts.push(literal)
    literal = ''
  }
  for (const { 0: found, index } of text.matchAll(token)) {
    literal += text.slice(at, index)
    at = index + found.length
    if (found === '{{' || found === '}}') {
      literal += found.charAt(0)
      continue
    }
    const [, name, all, as = 'text'] = placeForm.exec(found) ?? []
    if (name === undefined) {
      const shown = found.length > 1 ? found : text.slice(index, index + 20)
      throw new Error(`"${shown}" is no place such as {userID}; a brace itself is written twice`)
    }
    flush()
    parts.push({ name, all: all !== undefined, as: as === 'boolean' || as === 'number' ? as : 'text' })
  }
  literal += text.slice(at)
  flush()
  return parts
}

export const placesOf = (parts: readonly TemplatePart[]): Place[] =>
  parts.filter((part): part is Place => typeof part !== 'string')
