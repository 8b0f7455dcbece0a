import type { AuditRecord } from '#domain/audit.ts'

/** One line for each row, with its record: the form of exports, and of what audit sinks send. */
export function auditJsonLines({ link, rows }: AuditRecord): string[] {
  return rows.map((row) => JSON.stringify({ ...row, record: link }))
}
