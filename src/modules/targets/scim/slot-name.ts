import { timeAttribute } from '#identity/entry-times.ts'
import type { ResourceSchema } from '#protocols/scim/resource-schema.ts'
import type { FilterName } from './filter-to-scim.ts'
import type { ResourceMapping } from './resource-mapping.ts'

/** What an attribute of the mapping means in a filter. */
export function slotName(attribute: string, mapping: ResourceMapping): FilterName {
  const slot = mapping.slots.byName.get(attribute.toLowerCase())
  if (slot === undefined) return { kind: 'absent' }
  switch (slot.kind) {
    case 'plain':
      // Lists of plain values are told apart from none by what was read only.
      return slot.leaf.multiValued ? { kind: 'unknown' } : { kind: 'path', path: slot.path, leaf: slot.leaf }
    case 'elements':
      return { kind: 'path', path: slot.path, leaf: slot.path.attribute, neverEmpty: true }
    case 'values':
      return { kind: 'path', path: slot.path, leaf: slot.path.sub, neverEmpty: true }
  }
}

/** A reserved name of a time; undefined for any other attribute. */
export function timeName(attribute: string, schema: ResourceSchema): FilterName | undefined {
  const name = timeAttribute(attribute)
  const path = name === undefined ? undefined : schema.resolveAttribute(name, true)
  if (name === undefined) return undefined
  return path?.sub === undefined ? { kind: 'unknown' } : { kind: 'path', path, leaf: path.sub }
}
