import { constants, DatabaseSync } from 'node:sqlite'

/** What the process that reads a report gets, as one line. */
export interface ReportTask {
  readonly file: string
  readonly sql: string
  readonly values: readonly string[]
  readonly limit: number
}

/** Its output, one message per line: columns, then rows, then the end; or a failure at any time. */
export type ReportMessage =
  | { readonly columns: readonly string[] }
  | { readonly rows: readonly (readonly (string | null)[])[] }
  | { readonly end: true }
  | { readonly failed: string }

/** The name of report views, and of nothing else. */
const isReportView = (name: string | null): boolean => name?.startsWith('report_') === true

/** Opens a database file for statements that read report views. No other statement can be prepared. */
export function openReportFile(file: string): DatabaseSync {
  const database = new DatabaseSync(file, { readOnly: true, timeout: 5000 })
  database.exec('pragma query_only = on; pragma case_sensitive_like = on; pragma temp_store = memory')
  database.setAuthorizer((action, table, column, _database, view) => {
    // Without a column, rows are counted and not read; SQLite does not pass the view in that case.
    const allowed =
      action === constants.SQLITE_SELECT ||
      action === constants.SQLITE_FUNCTION ||
      (action === constants.SQLITE_READ && (isReportView(table) || isReportView(view) || column === ''))
    return allowed ? constants.SQLITE_OK : constants.SQLITE_DENY
  })
  return database
}
