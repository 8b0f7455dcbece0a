import { Attributes } from '#identity/attributes.ts'
import type { InsertEntry } from '#identity/directory.ts'
import type { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'

/** Where and how somebody was found in the directory, so that it can be asked about them again. */
export interface DirectoryLink {
  readonly dn: Dn
  /** What found the entry. One that it does not match any more would not be found by a login either. */
  readonly filter: Filter
  /** The entry's own identifier, where it has one: a name may come to be another person's. */
  readonly id: string | undefined
  /** The attribute whose first value is the login; undefined where the filter holds it. */
  readonly uidAttr: string | undefined
  /** What the credential said and the entry did not. */
  readonly added: Attributes
}

export function directoryLink(
  { dn, attributes }: InsertEntry,
  { filter, uidAttr, added = new Attributes() }: Pick<DirectoryLink, 'filter' | 'uidAttr'> & { added?: Attributes },
): DirectoryLink {
  return { dn, filter, id: entryId(attributes), uidAttr, added }
}

/** The attributes that hold an entry's own identifier, by system. */
export const idAttributes = ['entryUUID', 'objectGUID', 'nsUniqueId', 'ipaUniqueID'] as const

export function entryId(attributes: Attributes): string | undefined {
  for (const name of idAttributes) {
    const id = attributes.first(name)
    if (id !== undefined && id !== '') return id
  }
  return undefined
}
