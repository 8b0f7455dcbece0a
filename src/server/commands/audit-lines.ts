import type { AuditEntry } from '#domain/audit.ts'
import type { FileComparison, FileProblem } from '#server/commands/audit-files.ts'
import { terminalLine } from '#server/commands/terminal-line.ts'
import type { AuditProblem, AuditReport } from '#storage/audit/audit-verification.ts'

const verbs = { add: '+', replace: '=', delete: '-', issue: 'issued ', refuse: 'refused ' } as const

/** A token endpoint refuses callers before it knows them. */
const unknownParty = '(unknown)'

/** A change for a person: when, who asked for what about whom, and on whose behalf. */
export function auditLine(row: AuditEntry, width: number): string {
  const { time, requestor, caller, subject, workflow, target, kind, action, attribute, value, approval, reason } = row
  const change = `${verbs[action]}${attribute}${value === undefined ? '' : `=${value}`}`
  const by = caller === undefined ? requestor : `${requestor} (called by ${caller})`
  const more = [
    ...(approval === undefined ? [] : [`approval ${approval}`]),
    ...(reason === undefined ? [] : [`reason: ${reason}`]),
  ]
  const text = [
    `${time.toISOString()} ${target} ${subject === '' ? unknownParty : subject} ${kind} ${change}`,
    `by ${by === '' ? unknownParty : by}`,
    // A request that was refused before it became a run has no id.
    workflow.id === '' ? workflow.name : `${workflow.name} ${workflow.id}`,
    ...more,
  ].join(', ')
  return terminalLine(text, width)
}

export const auditJson = (row: AuditEntry): string => JSON.stringify(row)

export function reportLines(report: AuditReport): string[] {
  const { checked, authenticated, since, sealed, pruned, problems } = report
  const found = problems.length === 0 ? 'all as they were written' : problemCount(problems)
  return [
    ...problemLines(problems),
    ...pruned.map(({ chain, number }) => `pruned: chain ${chain}, records 1 to ${number}`),
    ...sealed.map(
      ({ chain, number, at }) =>
        `authenticated from chain ${chain}, record ${number + 1} on: earlier records were sealed as found on ${at.toISOString()}`,
    ),
    ...(authenticated || problems.length > 0
      ? []
      : ['not authenticated: no gateway has sealed this audit yet; start one']),
    // After all records and seals were removed, the next start seals an empty audit: the time shows that.
    ...(since === undefined
      ? []
      : [`authenticated since ${since.toISOString()}: nothing is proven of the time before`]),
    `${checked} record${checked === 1 ? '' : 's'} checked: ${found}`,
  ]
}

export const anchorLines = (comparison: FileComparison): string[] => comparisonLines(comparison, 'anchored head')
export const exportLines = (comparison: FileComparison): string[] => comparisonLines(comparison, 'exported record')

function comparisonLines({ file, compared, pruned, problems }: FileComparison, what: string): string[] {
  const found = problems.length === 0 ? 'all as in the database' : problemCount(problems)
  const gone = pruned === 0 ? '' : `; ${pruned} ${pruned === 1 ? 'was' : 'were'} pruned since`
  return [
    ...problemLines(problems).map((line) => `${file}: ${line}`),
    `${file}: ${compared} ${what}${compared === 1 ? '' : 's'} compared: ${found}${gone}`,
  ]
}

const maxTold = 100
/** Counts the lines that are printed. */
function problemCount(problems: readonly FileProblem[]): string {
  const count = problemLines(problems).length
  if (problems.length >= maxTold) return `at least ${count} problem${count === 1 ? '' : 's'}`
  return `${count} problem${count === 1 ? '' : 's'}`
}

const meanings: Readonly<Partial<Record<AuditProblem['kind'], string>>> = {
  forged: 'its first or last record was changed without the key',
  broken: 'up to here it was changed without the key, before later records were written',
  unsealed: 'it has no seal',
  older: 'the database does not have this record: it may be an old backup',
  differs: 'the database has another record in its place, or none',
  resealed: 'it was pruned, and later sealed again by an operator',
}

/** A key that is missing concerns every chain, and is printed once. */
const problemLines = (problems: readonly FileProblem[]): string[] => [...new Set(problems.map(problemLine))]

function problemLine({ kind, chain, number, id, key, line }: FileProblem): string {
  if (line !== undefined) return `invalid: line ${line} is not JSON: the file is damaged, or is another file`
  if (kind === 'invalid') return 'invalid: an anchor was changed, or the key of this audit did not sign it'
  if (kind === 'no key') {
    return `no key: key ${key} is needed to verify it. Set GATEHOUSE_AUDIT_KEY or GATEHOUSE_SECRET_KEY as the gateway has it, or give its data folder`
  }
  const meaning = meanings[kind]
  const place = chain === undefined ? 'a record outside the chains' : `chain ${chain}, record ${number ?? '?'}`
  return `${kind}: ${place}${id === undefined ? '' : `, row ${id}`}${meaning === undefined ? '' : ` (${meaning})`}`
}
