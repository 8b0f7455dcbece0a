import { constants, DatabaseSync } from 'node:sqlite'

/** Views for reports, and nothing else, are named so. */
const isReportView = (name: string | null): boolean => name?.startsWith('report_') === true

/** A database file, open for statements that read the views for reports; all others are not prepared. */
export function openReportFile(file: string): DatabaseSync {
  const database = new DatabaseSync(file, { readOnly: true, timeout: 5000 })
  database.exec('pragma query_only = on; pragma case_sensitive_like = on; pragma temp_store = memory')
  database.setAuthorizer((action, table, column, _database, view) => {
    // Without a column, rows are counted and nothing in them is read; which view that is for is not told.
    const allowed =
      action === constants.SQLITE_SELECT ||
      action === constants.SQLITE_FUNCTION ||
      (action === constants.SQLITE_READ && (isReportView(table) || isReportView(view) || column === ''))
    return allowed ? constants.SQLITE_OK : constants.SQLITE_DENY
  })
  return database
}
