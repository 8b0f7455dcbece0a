import type { ListPage } from '#features/portal/runs/list-answer.ts'

/** A page of rows that are in memory, in the order of their unique names. */
export function pageByName<R extends { readonly name: string }>(
  rows: readonly R[],
  { after, limit }: { readonly after?: string; readonly limit: number },
): ListPage<R> {
  const start = after === undefined ? 0 : rows.findIndex(({ name }) => name > after)
  const page = start < 0 ? [] : rows.slice(start, start + limit)
  const last = page.at(-1)
  const isLast = start < 0 || start + limit >= rows.length
  return { rows: page, ...(isLast || last === undefined ? {} : { next: last.name }) }
}
