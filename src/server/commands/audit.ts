import { userInfo } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import type { AuditEntry, AuditPart } from '#domain/audit.ts'
import { auditJsonLines } from '#engine/audit/audit-json-lines.ts'
import { systemClock } from '#kernel/clock.ts'
import { parseMoment } from '#kernel/moment.ts'
import { readArguments } from '#server/commands/arguments.ts'
import { compareWithAnchors, compareWithExport } from '#server/commands/audit-files.ts'
import { anchorLines, auditJson, auditLine, exportLines, reportLines } from '#server/commands/audit-lines.ts'
import type { CommandIo, RunCommand } from '#server/commands/commands.ts'
import { databaseOptions, databaseUsage, withDatabase } from '#server/commands/open-database.ts'
import { terminalWidth } from '#server/commands/terminal-line.ts'
import { wholeNumber } from '#server/commands/whole-number.ts'
import type { AuditQuery, AuditStore } from '#storage/audit/audit-store.ts'

const usage = `Usage: gatehouse audit verify [--anchor FILE] [--export FILE] [OPTIONS]
       gatehouse audit tail [--follow] [OPTIONS]
       gatehouse audit export [--from WHEN] [--until WHEN] [OPTIONS]
       gatehouse audit prune --before WHEN [--only tokens|others] --yes [OPTIONS]
       gatehouse audit seal --yes [OPTIONS]

verify  Print every record that was changed, removed or inserted; exit code 1 if there is one
tail    Print the latest changes, oldest first
export  Print all changes, oldest first, as JSON Lines
prune   Remove the records from before a time, for good
seal    Accept the audit in its current state, after verify has reported a forged seal

${databaseUsage}
  --json            verify and tail: print JSON
  --anchor FILE     verify: compare with the anchors in this file, JSON Lines; may repeat
  --export FILE     verify: compare with this export, or with the file of an audit sink; may repeat
  --subject LOGIN   tail: only changes of this user
  --requestor LOGIN tail: only changes that this user requested
  --workflow ID     tail: only changes of this run
  --target NAME     tail: only changes at this target
  --limit N         tail: at most this many (50)
  --follow          tail: continue as changes are made, until Ctrl-C
  --from, --until   tail and export: from then on, and before then
  --before WHEN     prune: remove what is older
  --only PART       prune: only decisions about tokens (tokens), or everything else (others)
  --unsent          prune: remove also what an audit sink has not received
  --by NAME         prune and seal: who does it, for the audit (the user of the system)
  --yes             prune and seal: confirm

WHEN is 90s, 15m, 1h or 7d ago, or an ISO 8601 date.
verify, prune and seal need the gateway's key: GATEHOUSE_AUDIT_KEY, GATEHOUSE_SECRET_KEY or its --data folder.`

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

const maxLimit = 100_000
const pageSize = 500
const followEveryMillis = 1000
/** Rows that a follower remembers: more than a page, in which it looks for new ones. */
const maxRemembered = 4 * pageSize

class WrongUsage extends Error {}

type Values = Extract<ReturnType<typeof read>, { values: unknown }>['values']
type Action = (store: AuditStore, values: Values, io: CommandIo) => Promise<number>

const read = (args: string[], io: CommandIo) => readArguments(args, { usage, options, positionals: 1 }, io)

/** `gatehouse audit verify|tail|export|prune|seal`. */
export const auditCommand: RunCommand = async (args, io) => {
  const given = read(args, io)
  if ('exit' in given) return given.exit
  const { values, positionals } = given
  try {
    const action = actions.get(positionals[0] ?? '')
    if (action === undefined) throw new WrongUsage(`unknown action "${positionals[0]}"`)
    const run = action(values)
    return await withDatabase(values, ({ audit }) => run(audit, values, io))
  } catch (error) {
    io.stderr(`gatehouse audit: ${error instanceof Error ? error.message : String(error)}`)
    if (!(error instanceof WrongUsage)) return 1
    io.stderr(usage)
    return 2
  }
}

/** Usage is checked before the database is opened. */
const actions: ReadonlyMap<string, (values: Values) => Action> = new Map<string, (values: Values) => Action>([
  ['verify', () => verify],
  ['tail', (values) => tail(readFilters(values), readLimit(values))],
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
    const tell = (rows: readonly AuditEntry[]): void => {
      for (const row of rows) io.stdout(json === true ? auditJson(row) : auditLine(row, width))
    }
    // Who follows knows all rows of a page from the beginning, whether they were asked for or not.
    const first = await latest(store, filters, follow === true ? Math.max(limit, pageSize) : limit)
    tell(first.slice(-limit))
    remember(known, first)
    while (follow === true) {
      await delay(followEveryMillis)
      const rows = await latest(store, filters, maxLimit, known)
      tell(rows)
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

/**
 * The latest rows that are not known, oldest first. Rows that are written at the same time come up in any order, so the
 * whole of a page is looked at.
 */
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
    io.stdout(`${removed} record${removed === 1 ? '' : 's'} from before ${before.toISOString()} removed`)
    if (waiting.length === 0) return 0
    io.stderr(
      `gatehouse audit: older records were kept: the audit sink ${waiting.join(', ')} has not received them. Wait until it has, or add --unsent.`,
    )
    return 1
  }

function seal(by: string, { yes }: Values): Action {
  if (yes !== true) throw new WrongUsage('seal accepts every record as it is now; run verify first, then add --yes')
  return async (store, _values, io) => {
    const { records, replacedKeys = [] } = await store.seal(by)
    io.stdout(`Sealed ${records} record${records === 1 ? '' : 's'}`)
    if (replacedKeys.length > 0) {
      io.stderr(
        `gatehouse audit: the audit was sealed with key ${replacedKeys.join(', ')}, and now has another. Give every gateway the new key and restart it: until then it cannot write to the audit. If you did not mean to replace the key, run seal again with the gateway's key.`,
      )
    }
    return 0
  }
}

const maxName = 200
function readBy({ by = `${userInfo().username} (command line)` }: Values): string {
  if (by === '' || by.length > maxName) throw new WrongUsage(`--by has 1 to ${maxName} characters`)
  return by
}

function readPart({ only }: Values): AuditPart | undefined {
  if (only === undefined || only === 'tokens' || only === 'others') return only
  throw new WrongUsage('--only is tokens or others')
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
  const from = readMoment('from', values.from)
  const until = readMoment('until', values.until)
  return { ...(from === undefined ? {} : { from }), ...(until === undefined ? {} : { until }) }
}

function readLimit({ limit }: Values): number {
  const number = wholeNumber(limit, 1, maxLimit)
  if (number === undefined) throw new WrongUsage(`--limit must be a whole number from 1 to ${maxLimit}`)
  return number
}

function readBefore({ before, yes }: Values): Date {
  const moment = readMoment('before', before)
  if (moment === undefined) throw new WrongUsage('--before is needed: what is older goes')
  if (yes !== true) {
    throw new WrongUsage(`everything from before ${moment.toISOString()} would be gone for good; add --yes to do it`)
  }
  return moment
}

function readMoment(name: string, text: string | undefined): Date | undefined {
  if (text === undefined) return undefined
  const moment = parseMoment(text, systemClock())
  if (moment === undefined) throw new WrongUsage(`--${name} must be such as 90s, 15m, 1h or 7d, or an ISO 8601 date`)
  return moment
}
