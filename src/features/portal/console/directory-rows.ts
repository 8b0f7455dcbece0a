import {
  type ConsoleGroup,
  type ConsolePerson,
  consoleGroup,
  consolePerson,
} from '#features/portal/contract/console-people.ts'
import { isEntryId, type People } from '#features/portal/front/people.ts'
import { isDeactivated } from '#identity/attributes.ts'
import type { DirectoryEntry } from '#identity/directory.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { matches } from '#identity/filter/evaluate.ts'
import { wireForm } from '#kernel/wire.ts'
import { badRequest } from '#sdk/api/json-answer.ts'

/** Longer than any login or name. */
const maxSearch = 256

/** The text of a search; empty if absent. */
export function readSearch([text = '']: readonly string[]): string {
  if (text.length > maxSearch || !text.isWellFormed() || text.includes('\0')) {
    throw badRequest(`q must be a text of at most ${maxSearch} characters.`)
  }
  return text.trim()
}

/** An identity that is stored as a hash can't be looked up, so the name replaces it. */
const idOf = ({ identity }: DirectoryEntry, name: string): string => (isEntryId(identity) ? identity : name)

export function personRow(people: People, entry: DirectoryEntry): ConsolePerson {
  const login = people.loginIn(entry, '')
  return wireForm(consolePerson, {
    id: idOf(entry, login),
    login,
    displayName: people.displayNameIn(entry),
    mail: entry.attributes.first('mail'),
    deactivated: isDeactivated(entry.attributes),
  })
}

export const groupNameAttribute = 'cn'

const groupClasses = ['groupOfNames', 'groupOfUniqueNames', 'posixGroup', 'group']

/** The classes of groups in directories (RFC 4519, RFC 2307) and in Active Directory. */
export const groupFilter: Filter = {
  kind: 'or',
  filters: groupClasses.map((value) => ({ kind: 'equal', attribute: 'objectClass', value })),
}

export const isGroup = ({ attributes }: DirectoryEntry): boolean => matches(groupFilter, attributes)

export function groupRow(entry: DirectoryEntry): ConsoleGroup {
  const { attributes, dn } = entry
  const name = attributes.first(groupNameAttribute) ?? dn.rdns[0]?.[0]?.value ?? dn.toString()
  return wireForm(consoleGroup, {
    id: idOf(entry, name),
    name,
    description: attributes.first('description'),
    dn: dn.toString(),
  })
}
