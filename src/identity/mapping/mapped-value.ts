import type { JsonValue } from '#kernel/json.ts'

/** A JSON document that a mapping produced; kept parsed, so that it is never joined into or out of text. */
export class JsonDocument {
  readonly value: JsonValue

  constructor(value: JsonValue) {
    this.value = value
  }
}

/** What a mapping yields for one attribute: text values (none = absent), or a JSON document. */
export type MappedValue = readonly string[] | JsonDocument

/** What a mapping reads. */
export interface MappingSource {
  values(name: string): readonly string[]
  /** The attribute as JSON where the source holds complex values, such as a SCIM resource. */
  json?(name: string): JsonValue | undefined
  readonly groups: readonly string[]
  readonly userID: string
}
