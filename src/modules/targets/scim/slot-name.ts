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
