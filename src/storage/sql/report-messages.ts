/** What the process that reads a report is asked. */
export interface ReportTask {
  readonly file: string
  readonly sql: string
  readonly values: readonly string[]
  readonly limit: number
}

/** What it answers, one in each line: columns, then rows, then the end; or a failure at any time. */
export type ReportMessage =
  | { readonly columns: readonly string[] }
  | { readonly rows: readonly (readonly (string | null)[])[] }
  | { readonly end: true }
  | { readonly failed: string }
