import type { ReportResult } from '#features/reports/contract/reports.ts'

/** The common type of a column's values, if they all agree. */
export type ColumnKind = 'text' | 'number' | 'dateTime'

export interface Column {
  /** A header field and a data field may have the same name. */
  readonly key: string
  readonly name: string
  readonly kind: ColumnKind
  /** In rem: fits the content, within limits. */
  readonly width: number
}

export type Row = readonly (string | undefined)[]

export interface Table {
  readonly columns: readonly Column[]
  readonly rows: readonly Row[]
}

const numeric = /^-?\d{1,15}(?:\.\d{1,15})?$/
const iso = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})$/

/** One row for each of the report's rows, after the header fields of its group. */
export function tableOf({ headerFields, dataFields, grouping }: ReportResult): Table {
  const rows: Row[] = []
  for (const { header, data } of grouping) {
    const above = headerFields.map((field) => value(header, field))
    for (const one of data) rows.push([...above, ...dataFields.map((field) => value(one, field))])
  }
  const fields = [
    ...headerFields.map((name) => ({ key: `header ${name}`, name })),
    ...dataFields.map((name) => ({ key: `data ${name}`, name })),
  ]
  const columns = fields.map((field, i) => {
    const kind = kindOf(rows, i)
    return { ...field, kind, width: kind === 'dateTime' ? timeWidth : widthOf(rows, i, field.name) }
  })
  return { columns, rows }
}

const timeWidth = 14
const sampled = 200

function widthOf(rows: readonly Row[], column: number, name: string): number {
  const longest = rows
    .slice(0, sampled)
    .reduce((most, row) => Math.max(most, row[column]?.length ?? 0), name.length + 2)
  return Math.min(20, Math.max(5, 2 + longest * 0.5))
}

const value = (row: Readonly<Record<string, string>>, field: string): string | undefined =>
  Object.hasOwn(row, field) ? row[field] : undefined

function kindOf(rows: readonly Row[], column: number): ColumnKind {
  let found: ColumnKind | undefined
  for (const row of rows) {
    const text = row[column]
    if (text === undefined || text === '') continue
    const kind = numeric.test(text) ? 'number' : iso.test(text) ? 'dateTime' : 'text'
    if (kind === 'text' || (found !== undefined && kind !== found)) return 'text'
    found = kind
  }
  return found ?? 'text'
}

export interface Sorting {
  readonly column: number
  readonly descending: boolean
}

/** Empty values come last in either direction; equal rows keep their order. */
export function sorted({ columns, rows }: Table, { column, descending }: Sorting, locale: string): readonly Row[] {
  const kind = columns[column]?.kind ?? 'text'
  const collator = new Intl.Collator(locale, { numeric: true })
  const compare: (a: string, b: string) => number =
    kind === 'number'
      ? (a, b) => Number(a) - Number(b)
      : kind === 'dateTime'
        ? (a, b) => Date.parse(a) - Date.parse(b)
        : collator.compare
  const direction = descending ? -1 : 1
  return rows.toSorted((one, other) => {
    const [a = '', b = ''] = [one[column], other[column]]
    if (a === '' || b === '') return Number(a === '') - Number(b === '')
    return direction * compare(a, b)
  })
}

/** Rows with a cell that contains the text. */
export function filtered(rows: readonly Row[], text: string): readonly Row[] {
  const wanted = text.trim().toLowerCase()
  if (wanted === '') return rows
  return rows.filter((row) => row.some((cell) => cell?.toLowerCase().includes(wanted) === true))
}
