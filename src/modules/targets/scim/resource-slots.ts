import {
  type AttributePath,
  type AttributeRef,
  internalName,
  type ResourceSchema,
} from '#protocols/scim/resource-schema.ts'
import { defaultSubAttribute, type SchemaAttribute } from '#protocols/scim/schema.ts'

/** What one internal attribute stands for in a resource. Its name is that of the built-in mapping of the SCIM gateway. */
export type Slot =
  /** One value, or a list of plain ones: of an attribute, or of a part of a single complex one. */
  | { readonly kind: 'plain'; readonly name: string; readonly path: AttributePath; readonly leaf: SchemaAttribute }
  /** A list of complex values, each as JSON text. */
  | { readonly kind: 'elements'; readonly name: string; readonly path: AttributeRef }
  /** The same list by the values of its default sub-attribute alone. */
  | {
      readonly kind: 'values'
      readonly name: string
      readonly path: AttributeRef & { readonly sub: SchemaAttribute }
    }

export interface SlotTable {
  /** Those that can be written. */
  readonly written: readonly Slot[]
  /** By name in lower case. */
  readonly byName: ReadonlyMap<string, Slot & { readonly readOnly: boolean }>
}

/** `own` are attributes of the core schema that are no attributes of users or groups here. */
export function slotsOf(schema: ResourceSchema, own: ReadonlySet<string>): SlotTable {
  const slots = Array.from(schema.attributes())
    .filter(({ attribute, extension }) => extension !== undefined || !own.has(attribute.name))
    .filter(({ attribute }) => attribute.returned !== 'never')
    .flatMap(slotsOfAttribute)
  return {
    written: slots.filter(({ readOnly }) => !readOnly),
    byName: new Map(slots.map((slot) => [slot.name.toLowerCase(), slot])),
  }
}

function slotsOfAttribute(ref: AttributeRef): (Slot & { readonly readOnly: boolean })[] {
  const { attribute } = ref
  const readOnly = attribute.mutability === 'readOnly'
  if (attribute.type !== 'complex') {
    return [{ kind: 'plain', name: internalName(ref), path: ref, leaf: attribute, readOnly }]
  }
  if (!attribute.multiValued) {
    return attribute.subAttributes.map((sub) => {
      const path = { ...ref, sub }
      const fixed = readOnly || sub.mutability === 'readOnly'
      return { kind: 'plain', name: internalName(path), path, leaf: sub, readOnly: fixed }
    })
  }
  const sub = defaultSubAttribute(attribute)
  const elements = { kind: 'elements', name: internalName(ref), path: ref, readOnly } as const
  if (sub === undefined || sub.multiValued || !isText(sub)) return [elements]
  const path = { ...ref, sub }
  return [elements, { kind: 'values', name: internalName(path), path, readOnly }]
}

export const isText = ({ type }: SchemaAttribute): boolean =>
  type === 'string' || type === 'reference' || type === 'binary'
