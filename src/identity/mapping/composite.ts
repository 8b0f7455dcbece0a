import { parseJsonTemplate } from '#identity/mapping/json-template.ts'
import { JsonDocument, type MappedValue, type MappingSource } from '#identity/mapping/mapped-value.ts'
import { parseTextTemplate } from '#identity/mapping/text-template.ts'

/** A template over several attributes, parsed once. */
export interface Composite {
  readonly attributes: readonly string[]
  /** No values when none of its attributes has one. */
  evaluate(source: MappingSource): MappedValue
}

const nothing: readonly string[] = []

/** A text that starts with `{` or `[` is a JSON template, any other a text template. Throws an Error with the reason. */
export function parseComposite(text: string): Composite {
  if (!/^\s*[{[]/.test(text)) {
    const template = parseTextTemplate(text)
    return {
      attributes: template.attributes,
      evaluate: (source) => {
        const value = template.render(source)
        return value === undefined ? nothing : [value]
      },
    }
  }
  const template = parseJsonTemplate(text)
  return {
    attributes: template.attributes,
    evaluate: (source) => {
      const value = template.render(source)
      return value === undefined ? nothing : new JsonDocument(value)
    },
  }
}
