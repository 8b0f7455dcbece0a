import type { AttributePath } from '#protocols/scim/resource-schema.ts'

/** Whether this is the core schema's attribute of the name; extensions may have others of the same name. */
export const isCore = ({ extension, attribute }: AttributePath, name: string): boolean =>
  extension === undefined && attribute.name === name
