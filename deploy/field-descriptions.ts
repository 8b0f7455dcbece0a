import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'

/** The first paragraph of a page of docs/reference/kinds, and the meaning of each field of its table. */
export interface KindPage {
  readonly purpose: string
  /** By path, as in `urls[].hosts`. */
  readonly fields: ReadonlyMap<string, string>
}

/** The column in the middle is "yes", "no" and perhaps the default, or a condition. */
const row = /^\| `([^`]+)` \| [^|]+ \| (.+) \|$/gm

export function readKindPage(page: string): KindPage {
  const [, purpose = ''] = page.split('\n\n')
  return {
    purpose: plainText(purpose),
    fields: new Map(Array.from(page.matchAll(row), ([, path = '', meaning = '']) => [path, plainText(meaning)])),
  }
}

/** Keeps only the words of links, which a terminal cannot follow. */
const plainText = (markdown: string): string =>
  markdown
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll('\\|', '|')
    .replaceAll('\n', ' ')
    .trim()

/** The definition with a description at every field that the page knows, for `kubectl explain`. */
export function describeFields(definition: JsonObject, { purpose, fields }: KindPage): JsonObject {
  // By way of text, since schemas share their parts and a structured clone would as well.
  const described = JSON.parse(JSON.stringify(definition)) as {
    spec: { versions: { schema: { openAPIV3Schema: JsonObject } }[] }
  }
  for (const { schema } of described.spec.versions) {
    schema.openAPIV3Schema = { description: purpose, ...schema.openAPIV3Schema }
    const spec = fieldOf(schema.openAPIV3Schema, 'spec')
    for (const [path, meaning] of fields) {
      const field = path.split('.').reduce(fieldOf, spec)
      if (field === undefined) throw new Error(`the page names ${path}, which the schema does not have`)
      Object.assign(field, { description: meaning })
    }
  }
  return described as unknown as JsonObject
}

/** `name`, `name[]` for each of a list, or `[]` for each of the list itself. */
function fieldOf(schema: JsonObject | undefined, step: string): JsonObject | undefined {
  const name = step.replace('[]', '')
  const field = name === '' ? schema : objectOf(objectOf(schema?.['properties'])?.[name])
  return step === name ? field : objectOf(field?.['items'])
}

const objectOf = (value: JsonValue | undefined): JsonObject | undefined => (isJsonObject(value) ? value : undefined)
