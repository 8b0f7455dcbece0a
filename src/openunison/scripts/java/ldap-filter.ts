import type { Filter as FilterTree } from '#identity/filter/ast.ts'
import { parseFilter, printFilter } from '#identity/filter/filter-text.ts'
import { ArrayList } from './collections.ts'
import { IllegalArgumentException } from './java-exception.ts'
import { type JavaEnum, javaEnum } from './java-lang.ts'
import { javaText } from './java-value.ts'

/** net.sourceforge.myvd.types.FilterType, in its own spelling. */
export const FilterType = javaEnum(['PRESENCE', 'SUBSTR', 'EQUALS', 'GREATER_THEN', 'LESS_THEN', 'AND', 'OR', 'NOT'])

/** Throws a Java exception if the text is not a filter. */
export function filterTree(text: string): FilterTree {
  try {
    return parseFilter(text.trim())
  } catch (error) {
    throw new IllegalArgumentException(`not a filter: ${error instanceof Error ? error.message : ''}`)
  }
}

/** net.sourceforge.myvd.types.Filter. */
export class Filter {
  #root: FilterNode

  constructor(source: unknown) {
    this.#root = source instanceof FilterNode ? source : new FilterNode(filterTree(javaText(source)))
  }

  getRoot(): FilterNode {
    return this.#root
  }

  getValue(): string {
    return this.#root.toString()
  }

  setValue(source: unknown): void {
    this.#root = new FilterNode(filterTree(javaText(source)))
  }

  /** The comparisons of that attribute, at any depth. */
  listNodes(attribute: unknown): ArrayList {
    const wanted = javaText(attribute).toLowerCase()
    const found = (node: FilterNode): FilterNode[] => {
      if (node.getName()?.toLowerCase() === wanted) return [node]
      const below = [...(node.getChildren()?.toArray() ?? []), node.getNot()]
      return below.flatMap((child) => (child instanceof FilterNode ? found(child) : []))
    }
    return new ArrayList(found(this.#root))
  }
}

/** net.sourceforge.myvd.types.FilterNode. Values are plain text; those of SUBSTR have a `*` for each gap. */
export class FilterNode {
  readonly #tree: FilterTree

  constructor(tree: FilterTree) {
    this.#tree = tree
  }

  getType(): JavaEnum {
    return types[this.#tree.kind]
  }

  getName(): string | null {
    return 'attribute' in this.#tree ? this.#tree.attribute : null
  }

  getValue(): string | null {
    const tree = this.#tree
    if (tree.kind === 'present') return ''
    if (tree.kind === 'substring') return [tree.initial ?? '', ...tree.any, tree.final ?? ''].join('*')
    return 'value' in tree ? tree.value : null
  }

  getChildren(): ArrayList | null {
    return 'filters' in this.#tree ? new ArrayList(this.#tree.filters.map((tree) => new FilterNode(tree))) : null
  }

  getNot(): FilterNode | null {
    return this.#tree.kind === 'not' ? new FilterNode(this.#tree.filter) : null
  }

  toString(): string {
    return printFilter(this.#tree)
  }
}

const built = (tree: FilterTree): FilterNode => new FilterNode(tree)
const comparison = (kind: 'equal' | 'greaterOrEqual' | 'lessOrEqual') => (attribute: unknown, value: unknown) =>
  built({ kind, attribute: attributeName(attribute), value: javaText(value) })

/** org.apache.directory.ldap.client.api.search.FilterBuilder. Values are escaped when the filter is written. */
export const FilterBuilder = {
  equal: comparison('equal'),
  greaterThanOrEqual: comparison('greaterOrEqual'),
  lessThanOrEqual: comparison('lessOrEqual'),
  present: (attribute: unknown): FilterNode => built({ kind: 'present', attribute: attributeName(attribute) }),
  and: (...filters: unknown[]): FilterNode => built({ kind: 'and', filters: filters.map(treeOf) }),
  or: (...filters: unknown[]): FilterNode => built({ kind: 'or', filters: filters.map(treeOf) }),
  not: (filter: unknown): FilterNode => built({ kind: 'not', filter: treeOf(filter) }),
}

function attributeName(name: unknown): string {
  const text = javaText(name)
  if (/^[\w.;-]+$/.test(text)) return text
  throw new IllegalArgumentException(`"${text}" is not the name of an attribute`)
}

const treeOf = (filter: unknown): FilterTree => filterTree(javaText(filter))

const types: Readonly<Record<FilterTree['kind'], JavaEnum>> = {
  present: FilterType.PRESENCE,
  substring: FilterType.SUBSTR,
  equal: FilterType.EQUALS,
  approximate: FilterType.EQUALS,
  greaterOrEqual: FilterType.GREATER_THEN,
  greater: FilterType.GREATER_THEN,
  lessOrEqual: FilterType.LESS_THEN,
  less: FilterType.LESS_THEN,
  and: FilterType.AND,
  or: FilterType.OR,
  not: FilterType.NOT,
}
