import { type AttributeSource, Attributes } from '#identity/attributes.ts'
import type { InsertEntry } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import type { Group } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import type { AccountLayout } from '#sdk/directory/account-layout.ts'
import type { EntryWords } from '#sdk/directory/entry-filter.ts'

const personClasses = ['top', 'person', 'organizationalPerson', 'inetOrgPerson']
const groupClasses = ['top', 'groupOfUniqueNames', 'groupOfNames']
/** The store's own identifier, by the name that directories have for it (RFC 4530). */
const idAttribute = 'entryUUID'

/** Users and groups as entries. */
export class EntryShape {
  readonly #layout: AccountLayout
  readonly #words: Readonly<Record<'people' | 'groups', EntryWords>>

  constructor(layout: AccountLayout) {
    this.#layout = layout
    const names = (naming: string, ownName: string) =>
      new Map([
        [naming.toLowerCase(), ownName],
        [idAttribute.toLowerCase(), 'id'],
      ])
    this.#words = {
      people: {
        classes: personClasses,
        names: names(layout.userAttribute, 'userID'),
        membership: new Set(['memberof']),
        ownName: 'userID',
      },
      groups: {
        classes: groupClasses,
        names: names(layout.groupAttribute, 'name'),
        membership: new Set(['uniquemember', 'member']),
        ownName: 'name',
      },
    }
  }

  words(part: 'people' | 'groups'): EntryWords {
    return this.#words[part]
  }

  personName(login: string): Dn {
    return this.#layout.people.child(this.#layout.userAttribute, login)
  }

  /** Undefined for what is no name. */
  parsedName(text: string): Dn | undefined {
    try {
      return Dn.parse(text)
    } catch {
      return undefined
    }
  }

  person(user: User): InsertEntry {
    const attributes = user.attributes.clone()
    attributes.set(this.#layout.userAttribute, [user.userID])
    attributes.set('objectClass', personClasses)
    if (user.id !== undefined) attributes.set(idAttribute, [user.id])
    attributes.set(
      'memberOf',
      user.groups.map((name) => this.#layout.groups.child(this.#layout.groupAttribute, name).toString()),
    )
    return { dn: this.personName(user.userID), attributes, ...(user.id === undefined ? {} : { id: user.id }) }
  }

  group(group: Group, members: readonly string[]): InsertEntry {
    const attributes = group.attributes?.clone() ?? new Attributes()
    attributes.set(this.#layout.groupAttribute, [group.name])
    if (group.description !== undefined) attributes.set('description', [group.description])
    attributes.set('objectClass', groupClasses)
    attributes.set(idAttribute, [group.id])
    attributes.set(
      'uniqueMember',
      members.map((login) => this.personName(login).toString()),
    )
    return { dn: this.#layout.groups.child(this.#layout.groupAttribute, group.name), attributes, id: group.id }
  }

  /** The entry as the store's own filters see it, where it knows an attribute by two names. */
  source({ attributes }: InsertEntry, part: 'people' | 'groups'): AttributeSource {
    const entryNames = new Map(Array.from(this.#words[part].names, ([name, own]) => [own.toLowerCase(), name]))
    return { values: (name) => attributes.values(entryNames.get(name.toLowerCase()) ?? name) }
  }
}

/** The value of the one RDN of this type that `dn` has below `container`; undefined when it stands elsewhere. */
export function leafBelow(container: Dn, dn: Dn, type: string): string | undefined {
  const [first] = dn.rdns
  const [rdn] = first ?? []
  if (first?.length !== 1 || rdn === undefined || rdn.type.toLowerCase() !== type.toLowerCase()) return undefined
  return dn.parent?.equals(container) ? rdn.value : undefined
}
