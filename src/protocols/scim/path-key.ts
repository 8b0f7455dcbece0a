import type { AttributePath } from '#protocols/scim/resource-schema.ts'

/** Names one attribute or sub-attribute, whatever spelling it was written with. */
export const pathKey = ({ extension, attribute, sub }: AttributePath): string =>
  `${extension ?? ''}|${attribute.name}|${sub?.name ?? ''}`
