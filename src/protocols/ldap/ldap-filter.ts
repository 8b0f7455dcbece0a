import {
  AndFilter,
  EqualityFilter,
  type Filter,
  GreaterThanEqualsFilter,
  LessThanEqualsFilter,
  NotFilter,
  OrFilter,
  PresenceFilter,
  SubstringFilter,
} from 'ldapts'
import { isAttributeDescription } from '#protocols/ldap/ldap-entry.ts'

/** A search filter for a server, as a tree. Values are plain; nothing is ever joined to a text. */
export type LdapFilter =
  | { readonly kind: 'and' | 'or'; readonly filters: readonly LdapFilter[] }
  | { readonly kind: 'not'; readonly filter: LdapFilter }
  | { readonly kind: 'present'; readonly attribute: string }
  | { readonly kind: 'equal'; readonly attribute: string; readonly value: string | Buffer }
  | { readonly kind: 'greaterOrEqual' | 'lessOrEqual'; readonly attribute: string; readonly value: string }
  | {
      readonly kind: 'substring'
      readonly attribute: string
      readonly initial?: string | undefined
      readonly any: readonly string[]
      readonly final?: string | undefined
    }

const everything = { kind: 'present', attribute: 'objectClass' } as const

/**
 * Not every server supports the true and false filters of RFC 4526, so they are expressed with filters that all
 * support.
 */
export function toWireFilter(filter: LdapFilter): Filter {
  switch (filter.kind) {
    case 'and':
      if (filter.filters.length === 0) return toWireFilter(everything)
      return new AndFilter({ filters: filter.filters.map(toWireFilter) })
    case 'or':
      if (filter.filters.length === 0) return nothing()
      return new OrFilter({ filters: filter.filters.map(toWireFilter) })
    case 'not':
      return new NotFilter({ filter: toWireFilter(filter.filter) })
    default:
      return isAttributeDescription(filter.attribute) ? toWireItem(filter) : nothing()
  }
}

function toWireItem(filter: Extract<LdapFilter, { attribute: string }>): Filter {
  const { attribute } = filter
  switch (filter.kind) {
    case 'present':
      return new PresenceFilter({ attribute })
    case 'equal':
      return filter.value.length === 0 || !isText(filter.value)
        ? nothing()
        : new EqualityFilter({ attribute, value: filter.value })
    case 'greaterOrEqual':
      return new GreaterThanEqualsFilter({ attribute, value: filter.value })
    case 'lessOrEqual':
      return new LessThanEqualsFilter({ attribute, value: filter.value })
    case 'substring':
      return toWireSubstring(filter)
  }
}

/** Servers differ in folding white space (RFC 4518), so only the parts between it are searched, which finds more. */
function toWireSubstring(filter: Extract<LdapFilter, { kind: 'substring' }>): Filter {
  const { attribute } = filter
  if (![filter.initial ?? '', ...filter.any, filter.final ?? ''].every(isText)) return nothing()
  const words = (text = '') => text.split(/[\s\p{C}]+/u)
  const [initial = '', ...behindInitial] = words(filter.initial)
  const beforeFinal = words(filter.final)
  const final = beforeFinal.pop() ?? ''
  const any = [...behindInitial, ...filter.any.flatMap(words), ...beforeFinal].filter((word) => word !== '')
  if (initial === '' && final === '' && any.length === 0) return new PresenceFilter({ attribute })
  return new SubstringFilter({ attribute, initial, any, final })
}

const nothing = (): Filter => new NotFilter({ filter: toWireFilter(everything) })

/** No server stores half a surrogate pair. */
const isText = (value: string | Buffer): boolean => typeof value !== 'string' || value.isWellFormed()
