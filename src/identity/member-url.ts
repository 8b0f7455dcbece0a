import type { Filter } from '#identity/filter/ast.ts'
import { parseFilter } from '#identity/filter/filter-text.ts'
import { Dn } from './dn.ts'

/** The users that a dynamic group covers. */
interface MemberUrl {
  readonly base: Dn
  readonly scope: 'base' | 'one' | 'sub'
  readonly filter: Filter
}

/** Whether the name is within the URL's base and scope. */
export function isNamedBy({ base, scope }: Pick<MemberUrl, 'base' | 'scope'>, dn: Dn): boolean {
  switch (scope) {
    case 'base':
      return dn.equals(base)
    case 'one':
      return dn.parent?.equals(base) ?? false
    case 'sub':
      return dn.isWithin(base)
  }
}

const anything = parseFilter('(objectClass=*)')

/** `ldap:///base??scope?filter` (RFC 4516); attributes and host are ignored. Throws for anything else. */
export function parseMemberUrl(url: string): MemberUrl {
  const match = /^ldap:\/\/[^/]*\/([^?]*)(?:\?([^?]*))?(?:\?([^?]*))?(?:\?([^?]*))?$/i.exec(url)
  if (match === null) throw new Error(`memberURL is not an LDAP URL: ${url}`)
  const [, base = '', , scope = '', filter = ''] = match
  return {
    base: Dn.parse(decodeURIComponent(base)),
    scope: scope === 'sub' || scope === 'one' ? scope : 'base',
    filter: filter === '' ? anything : parseFilter(decodeURIComponent(filter)),
  }
}
