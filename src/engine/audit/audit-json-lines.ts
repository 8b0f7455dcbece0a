import type { AuditRecord } from '#storage/audit-store.ts'

/** One line for each row, with its record: the form of exports, and of what audit sinks send. */
export function auditJsonLines({ link, rows }: AuditRecord): string[] {
  return rows.map((row) => JSON.stringify(link === undefined ? row : { ...row, record: link }))
}
