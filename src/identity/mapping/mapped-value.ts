import type { NamedGroup } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import type { Awaitable } from '#kernel/awaitable.ts'
import type { JsonValue } from '#kernel/json.ts'

/** A JSON document that a mapping produced. It stays parsed, so that it is never joined with text. */
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
  /** The names of all attributes, for mappers that pass everything on. */
  names?(): Iterable<string>
  readonly groups: readonly string[]
  /**
   * The groups of a user of a SCIM gateway, with the ids that it shows; those of the named entries of the directory, if
   * names are given and the gateway reads the directory. Absent for other sources.
   */
  memberships?(names?: readonly string[]): Awaitable<readonly NamedGroup[]>
  readonly userID: string
}

/** The attribute name that means the user's login wherever a mapping reads or writes it. */
export const userIdName = 'TREMOLO_USER_ID'

/** The attribute's values, or the login if the name means the login. */
export const valuesOf = (source: MappingSource, name: string): readonly string[] =>
  name === userIdName ? [source.userID] : source.values(name)

export const firstValueOf = (source: MappingSource, name: string): string | undefined =>
  name === userIdName ? source.userID : source.values(name)[0]

/** The value as attribute values: a JSON document is one value, its JSON text. */
export function toTexts(value: MappedValue): readonly string[] {
  if (!(value instanceof JsonDocument)) return value
  return [typeof value.value === 'string' ? value.value : JSON.stringify(value.value)]
}

export const userSource = ({ userID, attributes, groups }: User): MappingSource => ({
  userID,
  groups,
  values: (name) => attributes.values(name),
  names: () => attributes.names(),
})
