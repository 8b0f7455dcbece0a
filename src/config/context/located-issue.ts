import type { Issue, IssueLevel, Path } from '#kernel/issues.ts'
import { Place } from './config-document.ts'

/** A problem as it is printed. */
export interface LocatedIssue {
  readonly level: IssueLevel
  /** Relative to the configuration folder, or `Kind/namespace/name` of an object of a cluster. */
  readonly file: string
  /** False if line and column belong to a text that no one has seen. */
  readonly hasLines: boolean
  readonly line: number
  readonly column: number
  /** `spec.urls[0].uri`; empty for a whole document. */
  readonly path: string
  readonly message: string
}

/** Sorted by file and position, without repetitions. */
export function locateIssues(issues: readonly Issue[]): LocatedIssue[] {
  const located = issues.map(locate).sort(compare)
  return located.filter((issue, i) => {
    const previous = located[i - 1]
    return previous === undefined || formatIssue(previous) !== formatIssue(issue)
  })
}

/**
 * `file:line:col: path: message`, with `warning:` before the path of a warning, and without line and column if
 * there are none. One line, without characters that a terminal interprets: names of files and texts may come from a change
 * that no one has reviewed yet.
 */
export function formatIssue(issue: LocatedIssue): string {
  const { file, hasLines, line, column, level, path, message } = issue
  const parts = [
    hasLines ? `${file}:${line}:${column}` : file,
    ...(level === 'warning' ? ['warning'] : []),
    ...(path === '' ? [] : [path]),
  ]
  return plainLine([...parts, inOneLine(message)].join(': '))
}

export const inOneLine = (message: string): string => message.replace(/\s*[\r\n]+\s*/g, ' ')

/** Without characters that a terminal interprets. */
export const plainLine = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, '\ufffd')

export function pathText(path: Path): string {
  let text = ''
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`
    else if (!/^[\w.$/-]+$/.test(step)) text += `[${JSON.stringify(step)}]`
    else text += text === '' ? step : `.${step}`
  }
  return text
}

function locate(issue: Issue): LocatedIssue {
  const { level, message } = issue
  const place = issue.document instanceof Place ? issue.document : undefined
  const { line, column } = place?.position(issue.path) ?? { line: 1, column: 1 }
  return {
    level,
    file: place?.file ?? '.',
    hasLines: place?.hasLines ?? true,
    line,
    column,
    path: pathText(issue.path),
    message,
  }
}

function compare(a: LocatedIssue, b: LocatedIssue): number {
  return (
    compareText(a.file, b.file) ||
    a.line - b.line ||
    a.column - b.column ||
    compareText(a.level, b.level) ||
    compareText(a.path, b.path) ||
    compareText(a.message, b.message)
  )
}

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
