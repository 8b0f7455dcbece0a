import type { StoredJournalEntry } from '#domain/journal.ts'
import { isJsonObject, type JsonValue } from '#kernel/json.ts'
import { terminalLine } from '#server/commands/terminal-line.ts'

const maxRuns = 3

/** A call for a person: one line, and one more each for why it failed, what it changed and who ran what; none longer than the terminal. */
export function journalLines(row: StoredJournalEntry, width: number): string[] {
  const { time, status, method, path, millis, journal, caller, requestId, keyword, error, workflows, operations } = row
  const failed = error === undefined ? [] : [keyword === undefined ? error : `${keyword}: ${error}`]
  const changed = operations === undefined ? [] : [describeOperations(operations)]
  const runs = workflows.length > maxRuns ? `${workflows.length} runs` : workflows.map((run) => `run ${run}`).join(', ')
  const detailed = failed.length > 0 || changed.length > 0 || workflows.length > 0
  const origin = [journal, caller, `request ${requestId}`, runs].filter((text) => text !== '').join(', ')
  const lines = [
    `${time.toISOString()} ${status} ${method.padEnd(6)} ${path} (${millis} ms)`,
    ...[...failed, ...changed.filter((text) => text !== ''), ...(detailed ? [origin] : [])].map(
      (text) => `    ${text}`,
    ),
  ]
  return lines.map((line) => terminalLine(line, width))
}

/** A call for a program: one line. */
export function journalJson({ journal, keyword: scimType, ...row }: StoredJournalEntry): string[] {
  return [JSON.stringify({ gateway: journal, ...row, scimType })]
}

function describeOperations(operations: JsonValue): string {
  const list = Array.isArray(operations) ? operations : [operations]
  return list.map(describeOperation).join('; ')
}

function describeOperation(operation: JsonValue): string {
  if (!isJsonObject(operation)) return ''
  const { op, method, path, count, more } = operation
  if (typeof more === 'number') return `${more} more`
  const words = [op, method, path].filter((word) => typeof word === 'string')
  return `${words.join(' ')}${typeof count === 'number' ? ` (${count})` : ''}`
}
