import type { CompareFilter, Filter } from '#identity/filter/ast.ts'
import { evaluate } from '#identity/filter/evaluate.ts'

/** How a store knows entries of one kind, users or groups. */
export interface EntryWords {
  /** The objectClass of every entry of the kind; the store has no such attribute. */
  readonly classes: readonly string[]
  /** The store's names of attributes, by their directory names in lower case. */
  readonly names: ReadonlyMap<string, string>
  /** Membership attributes, in lower case, which the store can only search by the names of the other side. */
  readonly membership: ReadonlySet<string>
  /** The store's name for an entry's own name. */
  readonly ownName: string
}

/** The query for the store. */
export interface Narrowed {
  /** All entries if true, none if false. */
  readonly filter: Filter | boolean
  /** False if the store returns more entries than match, so that each has to be tested. */
  readonly exact: boolean
}

interface Part extends Narrowed {
  /**
   * For an entry without a membership the store returns false and the filter undefined, which differ only under a
   * negation.
   */
  readonly membership?: boolean
}

const untold: Part = { filter: true, exact: false }

/**
 * A directory filter for a store. `related` returns, for the value of a membership clause, the names of the
 * matching entries; undefined if they are too many.
 */
export function narrowFilter(
  filter: Filter,
  words: EntryWords,
  related: (clause: CompareFilter) => readonly string[] | undefined,
): Narrowed {
  const inner = (part: Filter): Part => {
    switch (part.kind) {
      case 'and':
      case 'or':
        return combine(part.kind, part.filters.map(inner))
      case 'not':
        return negate(inner(part.filter))
      default: {
        const name = part.attribute.toLowerCase()
        if (words.membership.has(name)) return part.kind === 'equal' ? anyOf(related(part), words.ownName) : untold
        if (name === 'objectclass') {
          return { filter: evaluate(part, { values: () => words.classes }) === true, exact: true }
        }
        return { filter: { ...part, attribute: words.names.get(name) ?? part.attribute }, exact: true }
      }
    }
  }
  const { filter: narrowed, exact } = inner(filter)
  return { filter: narrowed, exact }
}

/** Every membership clause that compares with one value. */
export function membershipClauses(filter: Filter, words: EntryWords): readonly CompareFilter[] {
  switch (filter.kind) {
    case 'and':
    case 'or':
      return filter.filters.flatMap((part) => membershipClauses(part, words))
    case 'not':
      return membershipClauses(filter.filter, words)
    default:
      return filter.kind === 'equal' && words.membership.has(filter.attribute.toLowerCase()) ? [filter] : []
  }
}

function combine(kind: 'and' | 'or', parts: readonly Part[]): Part {
  const absorbing = kind === 'or'
  const membership = parts.some((part) => part.membership === true)
  const decisive = parts.find((part) => part.filter === absorbing && part.exact)
  if (decisive !== undefined) return { filter: absorbing, exact: true, membership }
  const exact = parts.every((part) => part.exact)
  if (parts.some((part) => part.filter === absorbing)) return { filter: absorbing, exact, membership }
  const rest = parts.flatMap(({ filter }) => (typeof filter === 'boolean' ? [] : [filter]))
  return { filter: rest.length === 0 ? !absorbing : { kind, filters: rest }, exact, membership }
}

function negate({ filter, exact, membership }: Part): Part {
  if (!exact || membership === true) return untold
  return { filter: typeof filter === 'boolean' ? !filter : { kind: 'not', filter }, exact }
}

function anyOf(names: readonly string[] | undefined, attribute: string): Part {
  if (names === undefined) return untold
  const filters = names.map((value): Filter => ({ kind: 'equal', attribute, value }))
  return { filter: filters.length === 0 ? false : { kind: 'or', filters }, exact: true, membership: true }
}
