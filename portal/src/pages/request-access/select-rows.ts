import type { WorkflowListItem } from '#features/portal/contract/main.ts'
import { matches, sortByMatch } from '../../components/matching.ts'
import { rowKey } from './cart.ts'

/** The matching rows, the best match first, each once: a workflow without an org is in the list of every one. */
export function select(
  all: readonly WorkflowListItem[],
  query: string,
  named: ReadonlySet<string>,
): readonly WorkflowListItem[] {
  const rows = new Map<string, WorkflowListItem>()
  for (const row of all) {
    const texts = [row.label, row.name, row.description, ...Object.values(row.filterAnnotations)]
    if (query === '' || named.has(row.name) || matches(query, ...texts)) rows.set(rowKey(row), row)
  }
  return sortByMatch(query, [...rows.values()])
}
