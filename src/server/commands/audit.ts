import { setTimeout as delay } from 'node:timers/promises'
import type { AuditEntry, AuditPart } from '#domain/audit.ts'
import { auditJsonLines } from '#engine/audit/audit-sinks.ts'
import {
  compareWithAnchors,
  compareWithExport,
  type FileComparison,
  type FileProblem,
} from '#server/commands/audit-files.ts'
import type { CommandIo, RunCommand } from '#server/commands/command-line.ts'
import {
  maxLimit,
  operatorName,
  readArguments,
  readLimit,
  readTime,
  runAction,
  terminalLine,
  terminalWidth,
  unknownAction,
  WrongUsage,
} from '#server/commands/command-line.ts'
import { databaseOptions, databaseUsage, withDatabase } from '#server/commands/installation.ts'
import type { AuditQuery, AuditStore } from '#storage/audit/audit-store.ts'
import type { AuditProblem, AuditReport } from '#storage/audit/audit-verification.ts'

const usage = `Verify, read, export, prune and seal the audit log.

Usage:
  gatehouse audit verify [--anchor FILE] [--export FILE] [options]
  gatehouse audit tail [--follow] [options]
  gatehouse audit export [--from TIME] [--until TIME] [options]
  gatehouse audit prune --before TIME [--only tokens|others] --yes [options]
  gatehouse audit seal --yes [options]

Actions:
  verify  Report records that were changed, removed or inserted. Exit code 1 if there is one
  tail    Print the latest changes, oldest first
  export  Print all changes as JSON Lines, oldest first
  prune   Delete old records permanently
  seal    Accept the audit as it is, after verify reported a forged seal

Options:
${databaseUsage}
  --json                   verify, tail: print JSON
  --anchor FILE            verify: compare with the anchors in this file, JSON Lines; can be repeated
  --export FILE            verify: compare with this export or audit sink file; can be repeated
  --subject LOGIN          tail: only changes of this user
  --requestor LOGIN        tail: only changes that this user requested
  --workflow ID            tail: only changes of this run
  --target NAME            tail: only changes in this target
  --limit N                tail: number of changes (default 50)
  --follow                 tail: keep printing new changes
  --from TIME              tail, export: only changes from this time on
  --until TIME             tail, export: only changes before this time
  --before TIME            prune: delete records from before this time
  --only PART              prune: only decisions about tokens ("tokens"), or everything else ("others")
  --unsent                 prune: also delete records that an audit sink has not received
  --by NAME                prune, seal: name of the operator, for the audit (default the system user)
  --yes                    prune, seal: confirm

TIME is 90s, 15m, 1h or 7d (ago), or an ISO 8601 date.
verify, prune and seal need the key of the gateway: GATEHOUSE_AUDIT_KEY, GATEHOUSE_SECRET_KEY or its data folder.`

const options = {
  ...databaseOptions,
  json: { type: 'boolean' },
  anchor: { type: 'string', multiple: true },
  export: { type: 'string', multiple: true },
  subject: { type: 'string' },
  requestor: { type: 'string' },
  workflow: { type: 'string' },
  target: { type: 'string' },
  limit: { type: 'string', default: '50' },
  follow: { type: 'boolean' },
  from: { type: 'string' },
  until: { type: 'string' },
  before: { type: 'string' },
  only: { type: 'string' },
  unsent: { type: 'boolean' },
  by: { type: 'string' },
  yes: { type: 'boolean' },
} as const

const pageSize = 500
const followEveryMillis = 1000
/** How many rows `--follow` remembers: more than the page that it reads. */
const maxRemembered = 4 * pageSize

type Values = Extract<ReturnType<typeof read>, { values: unknown }>['values']
type Action = (store: AuditStore, values: Values, io: CommandIo) => Promise<number>

const read = (args: string[], io: CommandIo) =>
  readArguments(args, { command: 'audit', usage, options, positionals: 1, names: ['ACTION'] }, io)

export const auditCommand: RunCommand = async (args, io) => {
  const given = read(args, io)
  if ('exit' in given) return given.exit
  const { values, positionals } = given
  const [word = ''] = positionals
  return runAction('audit', io, async () => {
    const action = actions.get(word)?.(values) ?? unknownAction(word, [...actions.keys()])
    return withDatabase(values, ({ audit }) => action(audit, values, io))
  })
}

/** Each action checks its options before the database is opened. */
const actions: ReadonlyMap<string, (values: Values) => Action> = new Map<string, (values: Values) => Action>([
  ['verify', () => verify],
  ['tail', (values) => tail(readFilters(values), readLimit(values.limit))],
  ['export', (values) => exportAll(readPeriod(values))],
  ['prune', (values) => prune(readBefore(values), readBy(values), readPart(values))],
  ['seal', (values) => seal(readBy(values), values)],
])

const verify: Action = async (store, { json, anchor = [], export: exports = [] }, io) => {
  const report = await store.verify()
  const anchors = []
  for (const file of anchor) anchors.push(await compareWithAnchors(store, file))
  const exported = []
  for (const file of exports) exported.push(await compareWithExport(store, file))
  if (json === true) io.stdout(JSON.stringify({ ...report, anchors, exports: exported }))
  else {
    for (const line of [...anchors.flatMap(anchorLines), ...exported.flatMap(exportLines), ...reportLines(report)]) {
      io.stdout(line)
    }
  }
  const problems = [report, ...anchors, ...exported].flatMap((each) => each.problems)
  return problems.length === 0 && report.authenticated ? 0 : 1
}

const tail =
  (filters: Omit<AuditQuery, 'limit'>, limit: number): Action =>
  async (store, { json, follow }, io) => {
    const width = terminalWidth()
    const known = new Set<string>()
    const print = (rows: readonly AuditEntry[]): void => {
      for (const row of rows) io.stdout(json === true ? JSON.stringify(row) : auditLine(row, width))
    }
    // With --follow, remember a whole page, even if fewer rows are printed.
    const first = await latest(store, filters, follow === true ? Math.max(limit, pageSize) : limit)
    print(first.slice(-limit))
    remember(known, first)
    while (follow === true) {
      await delay(followEveryMillis)
      const rows = await latest(store, filters, maxLimit, known)
      print(rows)
      remember(known, rows)
    }
    return 0
  }

function remember(known: Set<string>, rows: readonly AuditEntry[]): void {
  for (const { id } of rows) known.add(id)
  for (const id of known) {
    if (known.size <= maxRemembered) break
    known.delete(id)
  }
}

/** The latest unknown rows, oldest first. Concurrent rows appear in any order, so each page is read as a whole. */
async function latest(
  store: AuditStore,
  filters: Omit<AuditQuery, 'limit'>,
  limit: number,
  known: ReadonlySet<string> = new Set(),
): Promise<readonly AuditEntry[]> {
  const rows: AuditEntry[] = []
  let after: string | undefined
  do {
    const wanted = Math.min(pageSize, limit - rows.length)
    const page = await store.list({ ...filters, limit: wanted, ...(after === undefined ? {} : { after }) })
    const fresh = page.rows.filter(({ id }) => !known.has(id))
    rows.push(...fresh)
    after = fresh.length === page.rows.length ? page.next : undefined
  } while (after !== undefined && rows.length < limit)
  return rows.reverse()
}

const exportAll =
  (period: Pick<AuditQuery, 'from' | 'until'>): Action =>
  async (store, _values, io) => {
    let after: string | undefined
    do {
      const page = await store.export({ ...period, limit: pageSize, ...(after === undefined ? {} : { after }) })
      for (const line of page.records.flatMap(auditJsonLines)) io.stdout(line)
      after = page.next
    } while (after !== undefined)
    return 0
  }

const prune =
  (before: Date, by: string, part: AuditPart | undefined): Action =>
  async (store, { unsent = false }, io) => {
    const { removed, waiting } = await store.prune(before, { by, unsent, ...(part === undefined ? {} : { part }) })
    io.stdout(`Deleted ${removed} record${removed === 1 ? '' : 's'} from before ${before.toISOString()}`)
    if (waiting.length === 0) return 0
    io.stderr(
      `gatehouse audit: kept older records that the audit sink ${waiting.join(', ')} has not received. Wait until it has, or add --unsent.`,
    )
    return 1
  }

function seal(by: string, { yes }: Values): Action {
  if (yes !== true) throw new WrongUsage('seal accepts all records as they are now; run verify first, then add --yes')
  return async (store, _values, io) => {
    const { records, replacedKeys = [] } = await store.seal(by)
    io.stdout(`Sealed ${records} record${records === 1 ? '' : 's'}`)
    if (replacedKeys.length > 0) {
      io.stderr(
        `gatehouse audit: this replaced the key ${replacedKeys.join(', ')} of the audit. Give every gateway the new key and restart it; until then it cannot write to the audit. If you did not want to replace the key, run seal again with the key of the gateway.`,
      )
    }
    return 0
  }
}

const maxName = 200
function readBy({ by: given }: Values): string {
  const by = operatorName(given)
  if (by === '' || by.length > maxName) throw new WrongUsage(`--by must have 1 to ${maxName} characters`)
  return by
}

function readPart({ only }: Values): AuditPart | undefined {
  if (only === undefined || only === 'tokens' || only === 'others') return only
  throw new WrongUsage('--only must be tokens or others')
}

function readFilters(values: Values): Omit<AuditQuery, 'limit'> {
  const { subject, requestor, workflow, target } = values
  return {
    ...readPeriod(values),
    ...(subject === undefined ? {} : { subject }),
    ...(requestor === undefined ? {} : { requestor }),
    ...(workflow === undefined ? {} : { workflowId: workflow }),
    ...(target === undefined ? {} : { target }),
  }
}

function readPeriod(values: Values): Pick<AuditQuery, 'from' | 'until'> {
  const from = readTime('from', values.from)
  const until = readTime('until', values.until)
  return { ...(from === undefined ? {} : { from }), ...(until === undefined ? {} : { until }) }
}

function readBefore({ before, yes }: Values): Date {
  const time = readTime('before', before)
  if (time === undefined) throw new WrongUsage('--before is required: older records are deleted')
  if (yes === true) return time
  throw new WrongUsage(`this deletes all records from before ${time.toISOString()} permanently; add --yes to confirm`)
}

const verbs = { add: '+', replace: '=', delete: '-', issue: 'issued ', refuse: 'refused ' } as const

/** The caller of a refused token exchange may be unknown. */
const unknownParty = '(unknown)'

function auditLine(row: AuditEntry, width: number): string {
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
    // A request that was rejected before it became a run has no id.
    workflow.id === '' ? workflow.name : `${workflow.name} ${workflow.id}`,
    ...more,
  ].join(', ')
  return terminalLine(text, width)
}

function reportLines(report: AuditReport): string[] {
  const { checked, authenticated, since, sealed, pruned, problems } = report
  const found = problems.length === 0 ? 'all unchanged' : problemCount(problems)
  return [
    ...problemLines(problems),
    ...pruned.map(({ chain, number }) => `pruned: chain ${chain}, records 1 to ${number}`),
    ...sealed.map(
      ({ chain, number, at }) =>
        `authenticated from chain ${chain}, record ${number + 1} on: earlier records were sealed as they were on ${at.toISOString()}`,
    ),
    ...(authenticated || problems.length > 0
      ? []
      : ['not authenticated: no gateway has sealed this audit yet; start a gateway']),
    // After all records and seals were removed, the next start seals an empty audit: the time shows that.
    ...(since === undefined
      ? []
      : [`authenticated since ${since.toISOString()}: nothing is proven about earlier times`]),
    `${checked} record${checked === 1 ? '' : 's'} checked: ${found}`,
  ]
}

const anchorLines = (comparison: FileComparison): string[] => comparisonLines(comparison, 'anchored head')
const exportLines = (comparison: FileComparison): string[] => comparisonLines(comparison, 'exported record')

function comparisonLines({ file, compared, pruned, problems }: FileComparison, what: string): string[] {
  const found = problems.length === 0 ? 'all match the database' : problemCount(problems)
  const gone = pruned === 0 ? '' : `; ${pruned} ${pruned === 1 ? 'was' : 'were'} pruned since then`
  return [
    ...problemLines(problems).map((line) => `${file}: ${line}`),
    `${file}: ${compared} ${what}${compared === 1 ? '' : 's'} compared: ${found}${gone}`,
  ]
}

const maxPrinted = 100
/** Counts the printed lines. */
function problemCount(problems: readonly FileProblem[]): string {
  const count = problemLines(problems).length
  if (problems.length >= maxPrinted) return `at least ${count} problem${count === 1 ? '' : 's'}`
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

/** A missing key affects every chain, and is printed once. */
const problemLines = (problems: readonly FileProblem[]): string[] => [...new Set(problems.map(problemLine))]

function problemLine({ kind, chain, number, id, key, line }: FileProblem): string {
  if (line !== undefined) return `invalid: line ${line} is not JSON: the file is damaged, or not the right file`
  if (kind === 'invalid') return 'invalid: an anchor was changed, or the key of this audit did not sign it'
  if (kind === 'no key') {
    return `no key: key ${key} is required to verify it. Set GATEHOUSE_AUDIT_KEY or GATEHOUSE_SECRET_KEY, or --data, as for the gateway`
  }
  const meaning = meanings[kind]
  const place = chain === undefined ? 'a record outside the chains' : `chain ${chain}, record ${number ?? '?'}`
  return `${kind}: ${place}${id === undefined ? '' : `, row ${id}`}${meaning === undefined ? '' : ` (${meaning})`}`
}
