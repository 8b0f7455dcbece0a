import type { Filter } from '#identity/filter/ast.ts'
import type { Entry } from '#testing/hostile/hostile-entry.ts'
import type { TargetOperation } from '#testing/hostile/hostile-operations.ts'

/** The attributes with values; undefined if there are none. */
export interface FilterNames {
  readonly many: string | undefined
  readonly one: string | undefined
  readonly text: string | undefined
  /** A filter has only the beginning of longer texts. */
  readonly longest: number
}

type Filters = readonly (readonly [TargetOperation, (entry: Entry, i: number, k: number) => Filter])[]

const longestPart = 300

const beginning = (text: string): string => text.slice(0, longestPart).replace(/[\ud800-\udbff]$/, '')

export const equal = (attribute: string, value: string, i: number): Filter => ({
  kind: 'equal',
  attribute,
  value,
  caseExact: i % 2 === 0,
})

/** The beginning of a long one, which has the number. */
export function substring(attribute: string, text: string, i: number): Filter {
  const value = beginning(text)
  if (value.length < text.length) return { kind: 'substring', attribute, initial: value, any: [] }
  const at = Math.max(0, text.search(/[mn]\d{6}/))
  const [before, after] = [text.slice(0, at), text.slice(at)]
  const kinds: Filter[] = [
    { kind: 'substring', attribute, any: [text] },
    { kind: 'substring', attribute, initial: text, any: [] },
    { kind: 'substring', attribute, any: [], final: text },
    { kind: 'substring', attribute, ...(before === '' ? {} : { initial: before }), any: [], final: after },
  ]
  return kinds[i % kinds.length] ?? { kind: 'or', filters: [] }
}

/** True if the first two are true; the rest changes nothing, unless it is parsed as something else. */
export const combined = (first: Filter, second: Filter, attribute: string, value: string): Filter => ({
  kind: 'and',
  filters: [
    first,
    { kind: 'or', filters: [second, { kind: 'equal', attribute, value: `${value} or` }] },
    { kind: 'not', filter: { kind: 'equal', attribute, value: `${value} not` } },
  ],
})

/** Each is true for this entry alone, by the k-th of its values. */
export const userFilters = ({ many = 'userID', one, longest }: FilterNames): Filters => {
  const textOf = (entry: Entry, k: number): string => (many === 'userID' ? entry.login : (entry.many[k] ?? ''))
  return within(longest, [
    ['users equal', (entry, i, k) => equal(many, textOf(entry, k), i)],
    ['users substring', (entry, i, k) => substring(many, textOf(entry, k), i)],
    [
      'users and/or/not',
      (entry, i, k) => {
        const text = textOf(entry, k)
        const second = one !== undefined && k === 0 ? equal(one, entry.one, i) : equal(many, text, i)
        return combined(equal('userID', entry.login, i + 1), second, many, beginning(text))
      },
    ],
  ])
}

/** By the name of the group, or by the value if no group can have it as its name. */
export function groupFilters({ text, longest }: FilterNames, byValue: boolean): Filters {
  const nameOf = (entry: Entry): string => (byValue ? entry.value : entry.group)
  return within(longest, [
    ['groups equal', (entry, i) => equal('name', nameOf(entry), i)],
    ['groups substring', (entry, i) => substring('name', nameOf(entry), i)],
    [
      'groups and/or/not',
      (entry, i) =>
        combined(
          equal('name', nameOf(entry), i + 1),
          text === undefined ? { kind: 'present', attribute: 'name' } : equal(text, entry.text, i),
          'name',
          beginning(nameOf(entry)),
        ),
    ],
  ])
}

const within = (longest: number, filters: Filters): Filters =>
  filters.map(([operation, filterOf]) => [operation, (...given) => shortened(filterOf(...given), longest)])

function shortened(filter: Filter, longest: number): Filter {
  if (filter.kind === 'and' || filter.kind === 'or') {
    return { ...filter, filters: filter.filters.map((part) => shortened(part, longest)) }
  }
  if (filter.kind !== 'equal' || filter.value.length <= longest) return filter
  return { kind: 'substring', attribute: filter.attribute, initial: beginning(filter.value), any: [] }
}
