import { firstValueOf, type MappingSource } from '#identity/mapping/mapped-value.ts'
import { parseTemplate } from '#kernel/template.ts'

/** A text with `${attribute}` places, each filled with the attribute's first value. */
export interface TextTemplate {
  /** Attributes it reads; none for a constant text. */
  readonly attributes: readonly string[]
  /** Undefined when none of its attributes has a value. */
  render(source: MappingSource): string | undefined
}

export function parseTextTemplate(text: string): TextTemplate {
  const template = parseTemplate(text, { keys: false, attributes: true })
  const { attributes } = template
  const [name] = attributes
  if (name === undefined) return { attributes, render: () => text }
  if (text === `\${${name}}`) return { attributes, render: (source) => firstValueOf(source, name) }
  return {
    attributes,
    render: (source) => {
      let found = false
      const attribute = (wanted: string): string | undefined => {
        const value = firstValueOf(source, wanted)
        if (value !== undefined) found = true
        return value
      }
      const output = template.render({ attribute })
      return found ? output : undefined
    },
  }
}
