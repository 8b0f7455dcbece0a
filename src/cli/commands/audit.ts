import { setTimeout as delay } from 'node:timers/promises'
import { auditJsonLines } from '#audit/audit-sinks.ts'
import type { AuditProblem, AuditReport } from '#audit/store/audit-report.ts'
import type { AuditStore } from '#audit/store/audit-store.ts'
import type { CommandOutput } from '#cli/command-line/command-line.ts'
import {
  defineCommand,
  fitted,
  listItems,
  maxLimit,
  operatorName,
  pageSize,
  readLimit,
  readTime,
  terminalLine,
  type Values,
  WrongUsage,
} from '#cli/command-line/command-line.ts'
import { withDatabase } from '#cli/command-line/installation.ts'
import { databaseOptions, outputOption } from '#cli/command-line/options.ts'
import { Progress } from '#cli/command-line/progress.ts'
import type { AuditEntry, AuditPart, AuditQuery } from '#sdk/audit/audit-entry.ts'
import { compareWithAnchors, compareWithExport, type FileComparison, type FileProblem } from './audit-files.ts'

const options = {
  ...databaseOptions,
  anchor: {
    value: 'FILE',
    multiple: true,
    about: 'verify: compare with the anchors in this file, JSON Lines; can be repeated',
  },
  export: {
    value: 'FILE',
    multiple: true,
    about: 'verify: compare with this export or audit sink file; can be repeated',
  },
  subject: { value: 'LOGIN', about: 'tail: only changes of this user' },
  requestor: { value: 'LOGIN', about: 'tail: only changes that this user requested' },
  workflow: { value: 'ID', about: 'tail: only changes of this run' },
  target: { value: 'NAME', about: 'tail: only changes in this target' },
  limit: { value: 'N', default: '50', about: 'tail: number of changes' },
  follow: { about: 'tail: keep printing new changes; with --output json, one per line' },
  from: { value: 'TIME', about: 'tail, export: only changes from this time on' },
  until: { value: 'TIME', about: 'tail, export: only changes before this time' },
  before: { value: 'TIME', about: 'prune: delete records from before this time' },
  only: { value: 'PART', about: 'prune: only decisions about tokens ("tokens"), or everything else ("others")' },
  unsent: { about: 'prune: also delete records that an audit sink has not received' },
  by: { value: 'NAME', about: 'prune, seal: name of the operator, for the audit (default the system user)' },
  yes: { about: 'prune, seal: confirm' },
  ...outputOption,
} as const
type AuditValues = Values<typeof options>

export const auditCommand = defineCommand({
  name: 'audit',
  about: 'Verify, read, export, prune and seal the audit log.',
  options,
  actions: {
    verify: {
      usage: '[--anchor FILE] [--export FILE] [options]',
      about: 'Report records that were changed, removed or inserted. Exit code 1 if there is one',
      run: verify,
    },
    tail: { usage: '[--follow] [options]', about: 'Print the latest changes, oldest first', run: tail },
    export: {
      usage: '[--from TIME] [--until TIME] [options]',
      about: 'Print all changes as JSON Lines, which verify reads, oldest first; with --output json, as one array',
      run: exportAll,
    },
    prune: {
      usage: '--before TIME [--only tokens|others] --yes [options]',
      about: 'Delete old records permanently',
      run: prune,
    },
    seal: {
      usage: '--yes [options]',
      about: 'Accept the audit as it is, after verify reported a forged seal',
      run: seal,
    },
  },
  notes: `TIME is 90s, 15m, 1h or 7d (ago), or an ISO 8601 date.
verify, prune and seal need the key of the gateway: GATEHOUSE_AUDIT_KEY, GATEHOUSE_SECRET_KEY or its data folder.`,
  examples: [
    'gatehouse audit tail --subject ada --from 7d',
    'gatehouse audit export --from 2026-01-01 > audit.jsonl',
    'gatehouse audit verify --export audit.jsonl',
  ],
})

const followEveryMillis = 1000
/** How many rows `--follow` remembers: more than the page that it reads. */
const maxRemembered = 4 * pageSize

function verify(values: AuditValues, _: readonly string[], io: CommandOutput): Promise<number> {
  return withDatabase(values, async ({ audit }) => {
    const progress = new Progress()
    const compare = async () => {
      const report = await audit.verify(async (checked) => progress.update(`Verifying: ${checked} records`))
      const anchors = []
      for (const file of values.anchor) anchors.push(await compareWithAnchors(audit, file, progress))
      const exports = []
      for (const file of values.export) exports.push(await compareWithExport(audit, file, progress))
      return { report, anchors, exports }
    }
    const { report, anchors, exports } = await compare().finally(() => progress.end())
    const lines = [...anchors.flatMap(anchorLines), ...exports.flatMap(exportLines), ...reportLines(report)]
    for (const line of lines) io.stdout(line)
    io.result({ ...report, anchors, exports })
    const problems = [report, ...anchors, ...exports].flatMap((each) => each.problems)
    return problems.length === 0 && report.authenticated ? 0 : 1
  })
}

async function tail(values: AuditValues, _: readonly string[], io: CommandOutput): Promise<void> {
  const { follow } = values
  const form = { lines: (row: AuditEntry) => fitted([auditLine(row)]) }
  const filters = readFilters(values)
  const limit = readLimit(values.limit)
  await withDatabase(values, async ({ audit }) => {
    const known = new Set<string>()
    // With --follow, remember a whole page, even if fewer rows are printed.
    const first = await latest(audit, filters, follow ? Math.max(limit, pageSize) : limit)
    if (!follow) {
      await io.list(first, { ...form, noun: 'audit records', filters })
      return
    }
    const print = (rows: readonly AuditEntry[]): void => {
      for (const row of rows) io.item(row, form)
    }
    print(first.slice(-limit))
    remember(known, first)
    for (;;) {
      await delay(followEveryMillis)
      const rows = await latest(audit, filters, maxLimit, known)
      print(rows)
      remember(known, rows)
    }
  })
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

async function exportAll(values: AuditValues, _: readonly string[], io: CommandOutput): Promise<void> {
  const period = readPeriod(values)
  await withDatabase(values, async ({ audit }) => {
    const read = async (limit: number, after: string | undefined) => {
      const page = await audit.export({ ...period, limit, ...(after === undefined ? {} : { after }) })
      return { items: page.records, next: page.next }
    }
    // On a terminal, the records themselves show the progress.
    const progress = process.stdout.isTTY ? undefined : new Progress()
    let records = 0
    async function* lines(): AsyncGenerator<string> {
      for await (const record of listItems(read)) {
        yield* auditJsonLines(record)
        progress?.update(`Exporting: ${++records} records`)
      }
    }
    await io.list(lines(), {
      lines: (line) => [line],
      json: (line) => JSON.parse(line),
      noun: 'audit records',
      filters: period,
    })
    progress?.end()
  })
}

function prune(values: AuditValues, _: readonly string[], io: CommandOutput): Promise<number> {
  const before = readBefore(values)
  const by = readBy(values)
  const part = readPart(values)
  return withDatabase(values, async ({ audit }) => {
    const how = { by, unsent: values.unsent, ...(part === undefined ? {} : { part }) }
    const { removed, waiting } = await new Progress().during('Deleting records', audit.prune(before, how))
    io.stdout(`Deleted ${removed} record${removed === 1 ? '' : 's'} from before ${before.toISOString()}`)
    io.result({ removed, before, waiting })
    if (waiting.length === 0) return 0
    io.stderr(
      `gatehouse audit: kept older records that the audit sink ${waiting.join(', ')} has not received. Wait until it has, or add --unsent.`,
    )
    return 1
  })
}

async function seal(values: AuditValues, _: readonly string[], io: CommandOutput): Promise<void> {
  const by = readBy(values)
  if (!values.yes) throw new WrongUsage('seal accepts all records as they are now; run verify first, then add --yes')
  await withDatabase(values, async ({ audit }) => {
    const { records, replacedKeys = [] } = await new Progress().during('Sealing records', audit.seal(by))
    io.stdout(`Sealed ${records} record${records === 1 ? '' : 's'}`)
    io.result({ records, replacedKeys })
    if (replacedKeys.length > 0) {
      io.stderr(
        `gatehouse audit: this replaced the key ${replacedKeys.join(', ')} of the audit. Give every gateway the new key and restart it; until then it cannot write to the audit. If you did not want to replace the key, run seal again with the key of the gateway.`,
      )
    }
  })
}

const maxName = 200
function readBy({ by: given }: AuditValues): string {
  const by = operatorName(given)
  if (by === '' || by.length > maxName) throw new WrongUsage(`--by must have 1 to ${maxName} characters`)
  return by
}

function readPart({ only }: AuditValues): AuditPart | undefined {
  if (only === undefined || only === 'tokens' || only === 'others') return only
  throw new WrongUsage('--only must be tokens or others')
}

function readFilters(values: AuditValues): Omit<AuditQuery, 'limit'> {
  const { subject, requestor, workflow, target } = values
  return {
    ...readPeriod(values),
    ...(subject === undefined ? {} : { subject }),
    ...(requestor === undefined ? {} : { requestor }),
    ...(workflow === undefined ? {} : { workflowId: workflow }),
    ...(target === undefined ? {} : { target }),
  }
}

function readPeriod(values: AuditValues): Pick<AuditQuery, 'from' | 'until'> {
  const from = readTime('from', values.from)
  const until = readTime('until', values.until)
  return { ...(from === undefined ? {} : { from }), ...(until === undefined ? {} : { until }) }
}

function readBefore({ before, yes }: AuditValues): Date {
  const time = readTime('before', before)
  if (time === undefined) throw new WrongUsage('--before is required: older records are deleted')
  if (time > new Date()) throw new WrongUsage('--before is in the future: it would also delete the record about it')
  if (yes) return time
  throw new WrongUsage(`this deletes all records from before ${time.toISOString()} permanently; add --yes to confirm`)
}

const verbs = { add: '+', replace: '=', delete: '-', issue: 'issued ', refuse: 'refused ' } as const

/** The caller of a refused token exchange may be unknown. */
const unknownParty = '(unknown)'

function auditLine(row: AuditEntry): string {
  const { time, requestor, caller, subject, workflow, target, kind, action, attribute, value, approval, reason } = row
  const change = `${verbs[action]}${attribute}${value === undefined ? '' : `=${value}`}`
  const by = caller === undefined ? requestor : `${requestor} (called by ${caller})`
  const more = [
    ...(approval === undefined ? [] : [`approval ${approval}`]),
    ...(reason === undefined ? [] : [`reason: ${reason}`]),
  ]
  return [
    `${time.toISOString()} ${target} ${subject === '' ? unknownParty : subject} ${kind} ${change}`,
    `by ${by === '' ? unknownParty : by}`,
    // A request that was rejected before it became a run has no id.
    workflow.id === '' ? workflow.name : `${workflow.name} ${workflow.id}`,
    ...more,
  ].join(', ')
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
export const problemLines = (problems: readonly FileProblem[]): string[] => [
  ...new Set(problems.map((problem) => terminalLine(problemLine(problem), maxProblemLine))),
]

/** Ids of records come from the database, in which anyone may have written. */
const maxProblemLine = 1000

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
