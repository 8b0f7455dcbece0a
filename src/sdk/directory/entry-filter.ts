import type { CompareFilter, Filter } from '#identity/filter/ast.ts'
import { evaluate } from '#identity/filter/evaluate.ts'

/** How entries of one kind, people or groups, are known in the store behind them. */
export interface EntryWords {
  /** What every entry of the kind has as its objectClass; the store has no such attribute. */
  readonly classes: readonly string[]
  /** The store's names for attributes that it calls otherwise, by their names in lower case. */
  readonly names: ReadonlyMap<string, string>
  /** Attributes of membership, in lower case, which the store can be asked about by the other side's names only. */
  readonly membership: ReadonlySet<string>
  /** The store's name for an entry's own name. */
  readonly ownName: string
}

/** What to ask of the store. */
export interface Narrowed {
  /** Of all entries, or of none, where it is true or false. */
  readonly filter: Filter | boolean
  /** False where the store gives more entries than match, so that each has to be tested. */
  readonly exact: boolean
}

interface Part extends Narrowed {
  /** Where an entry has no membership the store says false and the filter nothing, which only a negation tells apart. */
  readonly membership?: boolean
}

const untold: Part = { filter: true, exact: false }

/**
 * A directory filter as a store understands it. `related` gives, for the value of a clause of membership, the entries
 * that it holds for by their own names; undefined where they are too many to be named.
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

/** Every clause of membership that asks for one value. */
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
