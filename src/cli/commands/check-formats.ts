import { isAbsolute, posix } from 'node:path'
import { terminalLine } from '#cli/command-line/command-line.ts'
import { type CheckedLine, formatChecked } from '#cli/production/production-checks.ts'
import { formatIssue } from '#config/context/located-issue.ts'
import type { LoadResult, ScriptCount } from '#config/load/load.ts'
import { causeText, summarize, titleOf } from '#config/load/set-aside.ts'

/** What `check` found. */
export interface CheckResult {
  /** As given: files of problems are relative to it. */
  readonly config: string
  readonly version: string
  readonly isValid: boolean
  readonly loaded: Pick<LoadResult, 'configuration' | 'issues' | 'found' | 'scripts'>
  /** Empty without `--production`. */
  readonly checked: readonly CheckedLine[]
}

/** A problem of the configuration, or a production check that fails. */
interface Problem {
  readonly rule: string
  readonly level: 'error' | 'warning'
  readonly message: string
  readonly place: { readonly file: string; readonly line: number; readonly column: number } | undefined
  /** For a place that isn't a file, such as an option or an object of a cluster. */
  readonly name: string | undefined
}

/** The lines of each format; JSON is one document. */
export const checkFormats: Readonly<Record<string, (result: CheckResult) => readonly string[]>> = {
  text: ({ loaded, checked }) => [
    ...loaded.issues.map(formatIssue),
    ...summarize(loaded),
    ...scriptSummary(loaded.scripts),
    ...checked.map((line) => terminalLine(formatChecked(line), Number.POSITIVE_INFINITY)),
  ],
  json: () => [],
  sarif: (result) => JSON.stringify(sarif(result), null, 2).split('\n'),
  github: (result) => problemsOf(result).map(annotation),
}

/** What was checked, in a line for people. */
export function checkedSummary({ loaded: { found, issues }, checked }: Omit<CheckResult, 'isValid'>): string {
  const { files, kinds } = countObjects(found)
  const objects = `${counted(found.length, 'object')}${files === 0 ? '' : ` in ${counted(files, 'file')}`}`
  const listed = Object.entries(kinds).map(([kind, count]) => `${count} ${kind}`)
  const what = [
    `${objects}${listed.length === 0 ? '' : ` (${listed.join(', ')})`}`,
    ...(checked.length === 0 ? [] : [counted(new Set(checked.map(({ check }) => check)).size, 'production check')]),
  ]
  const warnings = [...issues, ...checked].filter(({ level }) => level === 'warning' || level === 'warn').length
  const text = `Checked ${what.join(' and ')}: ${warnings === 0 ? 'no problems' : counted(warnings, 'warning')}`
  return terminalLine(text, Number.POSITIVE_INFINITY)
}

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`

/** Kinds by their number of objects, the most frequent first. Objects of a cluster are in no file. */
function countObjects(found: LoadResult['found']): { files: number; kinds: Readonly<Record<string, number>> } {
  const files = new Set(found.flatMap(({ file, line }) => (line === undefined ? [] : [file]))).size
  const kinds = Array.from(
    Map.groupBy(found, ({ kind }) => kind),
    ([kind, { length }]) => [kind, length] as const,
  )
  kinds.sort(([a, many], [b, few]) => few - many || (a < b ? -1 : 1))
  return { files, kinds: Object.fromEntries(kinds) }
}

/** The document of `--output json`. */
export function checkDocument({ isValid, loaded: { configuration, issues, found, scripts }, checked }: CheckResult) {
  const problems = issues.map(({ hasLines, line, column, ...issue }) => ({
    ...issue,
    ...(hasLines ? { line, column } : {}),
  }))
  const setAside = found.flatMap(({ kind, name, file, line, cause }) =>
    cause === undefined ? [] : [{ kind, name, file, line, cause }],
  )
  const served = configuration === undefined ? 0 : found.length - setAside.length
  return { valid: isValid, ...countObjects(found), problems, served, setAside, scripts, checks: checked }
}

const maxUses = 10

/** Nothing if every script is served. */
function scriptSummary({ total, served, unserved }: ScriptCount): string[] {
  if (served === total) return []
  const shown = unserved.slice(0, maxUses).map(({ name, times }) => `${name} ${times}`)
  const more = unserved.length > maxUses ? [`${unserved.length - maxUses} more`] : []
  const uses = shown.length === 0 ? '' : ` (${[...shown, ...more].join(', ')})`
  return [
    terminalLine(
      `scripts: ${total}, served: ${served}, not served: ${total - served}${uses}`,
      Number.POSITIVE_INFINITY,
    ),
  ]
}

function problemsOf({ config, loaded, checked }: CheckResult): Problem[] {
  const found = loaded.issues.map(({ level, file, hasLines, line, column, path, message }) => ({
    rule: 'configuration',
    level,
    message: path === '' ? message : `${path}: ${message}`,
    place: hasLines ? { file: inRepository(config, file), line, column } : undefined,
    name: hasLines ? undefined : file,
  }))
  // Objects with errors of their own are among these problems already.
  const dependent = loaded.found.flatMap((object): Problem[] => {
    const { cause, file, line } = object
    if (cause === undefined || object.errors > 0) return []
    const message = `${titleOf(object)} is set aside because of ${causeText(cause)}`
    const place = line === undefined ? undefined : { file: inRepository(config, file), line, column: 1 }
    return [{ rule: 'set-aside', level: 'error', message, place, name: place === undefined ? file : undefined }]
  })
  const failed = checked.flatMap(({ level, check, title, at, message = '', remedy = '' }): Problem[] => {
    if (level === 'ok') return []
    const [, file, line, column, path] = /^(.*?):(\d+):(\d+)(?:: (.*))?$/.exec(at ?? '') ?? []
    const place =
      file === undefined ? undefined : { file: inRepository(config, file), line: Number(line), column: Number(column) }
    const text = [...(path === undefined ? [] : [path]), `${message}. ${remedy}`].join(': ')
    const name = place === undefined ? (at ?? title) : undefined
    return [{ rule: check, level: level === 'fail' ? 'error' : 'warning', message: text, place, name }]
  })
  return [...found, ...dependent, ...failed]
}

/** Readers look for a file in the folder where `check` was run, which is that of the repository. */
const inRepository = (config: string, file: string): string =>
  isAbsolute(file) ? file : posix.normalize(posix.join(config, file))

const ownRules: Readonly<Record<string, string>> = {
  configuration: 'The configuration can be loaded',
  'set-aside': 'Everything that the object depends on can be served',
}

/** The form of code scanners: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html */
function sarif(result: CheckResult): object {
  const problems = problemsOf(result)
  const titles = new Map<string, string>(result.checked.map(({ check, title }) => [check, title]))
  const rules = [...new Set(problems.map(({ rule }) => rule))].map((id) => ({
    id,
    shortDescription: { text: titles.get(id) ?? ownRules[id] ?? '' },
  }))
  return {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: { driver: { name: 'Gatehouse', version: result.version, rules } },
        columnKind: 'utf16CodeUnits',
        results: problems.map(({ rule, level, message, place, name }) => ({
          ruleId: rule,
          ruleIndex: rules.findIndex(({ id }) => id === rule),
          level,
          message: { text: message },
          locations: [
            place === undefined
              ? { logicalLocations: [{ fullyQualifiedName: name }] }
              : {
                  physicalLocation: {
                    artifactLocation: { uri: place.file.split('/').map(encodeURIComponent).join('/') },
                    region: { startLine: place.line, startColumn: place.column },
                  },
                },
          ],
        })),
      },
    ],
  }
}

/** A workflow command of GitHub Actions. Data and properties are escaped as its runner unescapes them. */
function annotation({ rule, level, message, place, name }: Problem): string {
  const properties = {
    ...(place === undefined ? {} : { file: place.file, line: place.line, col: place.column }),
    title: `Gatehouse: ${rule}`,
  }
  const given = Object.entries(properties).map(([key, value]) => `${key}=${escapeProperty(String(value))}`)
  return `::${level} ${given.join(',')}::${escapeData(name === undefined ? message : `${name}: ${message}`)}`
}

const escapeData = (text: string): string => text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A')
const escapeProperty = (text: string): string => escapeData(text).replaceAll(':', '%3A').replaceAll(',', '%2C')
