import { setTimeout as delay } from 'node:timers/promises'
import type { JournalPage, JournalQuery, StoredJournalEntry } from '#domain/journal.ts'
import { isJsonObject, type JsonValue } from '#kernel/json.ts'
import type { CommandIo, RunCommand } from '#server/commands/command-line.ts'
import {
  maxLimit,
  readArguments,
  readLimit,
  readTime,
  runAction,
  terminalLine,
  terminalWidth,
  unknownAction,
  WrongUsage,
  wholeNumber,
} from '#server/commands/command-line.ts'
import { databaseOptions, databaseUsage, withDatabase } from '#server/commands/installation.ts'
import { scimInit } from '#server/commands/scim-init.ts'
import type { JournalStore } from '#storage/journal-store.ts'

const usage = `Set up SCIM gateways and read their journal.

Usage:
  gatehouse scim log [options]
  gatehouse scim init --client NAME --url URL [--out DIR]

Actions:
  log   Print the latest calls to SCIM gateways, oldest first
  init  Write the configuration of a SCIM gateway for an identity provider; see "gatehouse scim init --help"

Options of log:
${databaseUsage}
  --gateway NAME           Only calls to the gateways of this Application; can be repeated
  --failed                 Only calls with status 400 or above
  --status N               Only calls with this status
  --since TIME             Only calls from this time on: 90s, 15m, 1h or 7d (ago), or an ISO 8601 date
  --limit N                Number of calls (default 50)
  --json                   Print JSON, one object per line
  --follow                 Keep printing new calls`

const options = {
  ...databaseOptions,
  gateway: { type: 'string', multiple: true },
  failed: { type: 'boolean' },
  status: { type: 'string' },
  since: { type: 'string' },
  limit: { type: 'string', default: '50' },
  json: { type: 'boolean' },
  follow: { type: 'boolean' },
} as const

const pageSize = 500
const followEveryMillis = 1000

type Filters = Omit<JournalQuery, 'limit' | 'after'>

export const scimCommand: RunCommand = (args, io) => {
  const [word = ''] = args
  if (word === 'init') return scimInit(args, io)
  return runAction('scim', io, async () => {
    // Before the options, which belong to `log`.
    if (word !== 'log' && word !== '-h' && word !== '--help') unknownAction(word, ['log', 'init'])
    const read = readArguments(args, { command: 'scim', usage, options, positionals: 1 }, io)
    return 'exit' in read ? read.exit : log(read.values, io)
  })
}

interface LogValues {
  readonly data: string
  readonly database?: string | undefined
  readonly gateway?: string[] | undefined
  readonly failed?: boolean | undefined
  readonly status?: string | undefined
  readonly since?: string | undefined
  readonly limit: string
  readonly json?: boolean | undefined
  readonly follow?: boolean | undefined
}

async function log(values: LogValues, io: CommandIo): Promise<number> {
  const [limit, filters] = [readLimit(values.limit), readFilters(values)]
  const width = terminalWidth()
  const show = values.json === true ? journalJson : (row: StoredJournalEntry) => journalLines(row, width)
  let printed = 0
  await withDatabase(values, ({ journal }) =>
    printCalls(journal, filters, limit, values.follow === true, (row) => {
      for (const line of show(row)) io.stdout(line)
      printed++
    }),
  )
  if (printed === 0) io.stderr(nothingFound(values.gateway))
  return 0
}

/** Goes to stderr, so that programs that read JSON don't get it. */
const nothingFound = (gateways: readonly string[] = []): string =>
  gateways.length === 0
    ? 'No recorded call matches.'
    : `No recorded call to ${gateways.map((name) => `"${name}"`).join(', ')} matches. --gateway takes the name of an Application.`

function readFilters(values: LogValues): Filters {
  const status = values.status === undefined ? undefined : wholeNumber(values.status, 100, 599)
  if (values.status !== undefined && status === undefined) throw new WrongUsage('--status must be an HTTP status')
  const since = readTime('since', values.since)
  return {
    ...(values.gateway === undefined ? {} : { journals: values.gateway }),
    ...(values.failed === undefined ? {} : { failed: values.failed }),
    ...(status === undefined ? {} : { status }),
    ...(since === undefined ? {} : { since }),
  }
}

async function printCalls(
  store: JournalStore,
  filters: Filters,
  limit: number,
  follow: boolean,
  print: (row: StoredJournalEntry) => void,
): Promise<void> {
  let newest = 0
  const printLatest = async (most: number): Promise<void> => {
    for (const row of await latest(store, filters, most, newest)) {
      print(row)
      newest = Math.max(newest, row.id)
    }
  }
  await printLatest(limit)
  while (follow) {
    await delay(followEveryMillis)
    await printLatest(maxLimit)
  }
}

/** The latest rows after `newest`, oldest first. */
async function latest(
  store: JournalStore,
  filters: Filters,
  limit: number,
  newest: number,
): Promise<readonly StoredJournalEntry[]> {
  const rows: StoredJournalEntry[] = []
  let after: string | undefined
  do {
    const page: JournalPage = await store.list({
      ...filters,
      limit: Math.min(pageSize, limit - rows.length),
      ...(after === undefined ? {} : { after }),
    })
    const fresh = page.entries.filter(({ id }) => id > newest)
    rows.push(...fresh)
    after = fresh.length === page.entries.length ? page.next : undefined
  } while (after !== undefined && rows.length < limit)
  // Gateways write rows in batches, so rows of several gateways are not in the order of the calls.
  return rows.sort((a, b) => a.time.getTime() - b.time.getTime() || a.id - b.id)
}

const maxRuns = 3

/** A line for the call, and one each for its error, its changes and its origin. */
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
