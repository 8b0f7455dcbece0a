import { terminalLine } from '#server/commands/terminal-line.ts'
import type { AuditProblem, AuditRecord, AuditReport, AuditRow } from '#storage/audit-store.ts'

const verbs = { add: '+', replace: '=', delete: '-', issue: 'issued ', refuse: 'refused ' } as const

/** A change for a person: when, who asked for what about whom, and on whose behalf. */
export function auditLine(row: AuditRow, width: number): string {
  const { time, requestor, caller, subject, workflow, target, kind, action, attribute, value, approval, reason } = row
  const change = `${verbs[action]}${attribute}${value === undefined ? '' : `=${value}`}`
  const by = caller === undefined ? requestor : `${requestor} (called by ${caller})`
  const more = [
    ...(approval === undefined ? [] : [`approval ${approval}`]),
    ...(reason === undefined ? [] : [`reason: ${reason}`]),
  ]
  const text = [
    `${time.toISOString()} ${target} ${subject} ${kind} ${change}`,
    `by ${by}`,
    `${workflow.name} ${workflow.id}`,
    ...more,
  ].join(', ')
  return terminalLine(text, width)
}

/** One line for each row, with the record that it stands in. */
export function auditJsonLines({ link, rows }: AuditRecord): string[] {
  return rows.map((row) => JSON.stringify(link === undefined ? row : { ...row, record: link }))
}

export const auditJson = (row: AuditRow): string => JSON.stringify(row)

export function reportLines({ checked, unchained, problems }: AuditReport): string[] {
  const old = unchained === 0 ? '' : `; ${unchained} are from before there were chains, and nothing can be said of them`
  const found = problems.length === 0 ? 'all as they were written' : problemCount(problems.length)
  return [...problems.map(problemLine), `${checked} records checked: ${found}${old}`]
}

const maxTold = 100
const problemCount = (count: number): string =>
  count >= maxTold ? `at least ${count} problems` : `${count} problem${count === 1 ? '' : 's'}`

function problemLine({ kind, chain, number, id }: AuditProblem): string {
  const place = chain === undefined ? 'a record outside the chains' : `chain ${chain}, record ${number ?? '?'}`
  return `${kind}: ${place}${id === undefined ? '' : `, row ${id}`}`
}
