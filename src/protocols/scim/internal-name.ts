import type { AttributePath } from '#protocols/scim/resource-schema.ts'

/** The internal attribute of the built-in mapping: named as the SCIM attribute is written in a filter. */
export function internalName({ extension, attribute, sub }: AttributePath): string {
  const name = extension === undefined ? attribute.name : `${extension}:${attribute.name}`
  return sub === undefined ? name : `${name}.${sub.name}`
}
