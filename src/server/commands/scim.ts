import { setTimeout as delay } from 'node:timers/promises'
import type { JournalPage, JournalQuery, StoredJournalEntry } from '#domain/journal.ts'
import { systemClock } from '#kernel/clock.ts'
import { parseMoment } from '#kernel/moment.ts'
import { readArguments } from '#server/commands/arguments.ts'
import type { RunCommand } from '#server/commands/commands.ts'
import { journalJson, journalLines } from '#server/commands/journal-lines.ts'
import { databaseOptions, databaseUsage, withDatabase } from '#server/commands/open-database.ts'
import { scimInit, scimInitUsage } from '#server/commands/scim-init.ts'
import { terminalWidth } from '#server/commands/terminal-line.ts'
import { wholeNumber } from '#server/commands/whole-number.ts'
import type { JournalStore } from '#storage/journal-store.ts'

const logUsage = `Usage: gatehouse scim log [--data DIR | --database URL] [OPTIONS]

Prints the latest calls to SCIM gateways, oldest first, while the gateway runs or after.

${databaseUsage}
  --gateway NAME    only calls to the gateways of this Application; may repeat
  --failed          only calls that were answered with 400 or above
  --status N        only calls that were answered with this status
  --since WHEN      only calls from then on: 90s, 15m, 1h, 7d ago, or an ISO 8601 date
  --limit N         at most this many of the latest calls (50)
  --json            one JSON object per line
  --follow          continue as calls come in, until Ctrl-C`

const usage = `${logUsage}

${scimInitUsage}`

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

const maxLimit = 100_000
const pageSize = 500
const followEveryMillis = 1000

type Filters = Omit<JournalQuery, 'limit' | 'after'>

/** `gatehouse scim log` and `gatehouse scim init`. */
export const scimCommand: RunCommand = async (args, io) => {
  const [action] = args
  if (action === 'init') return scimInit(args, io)
  // Before the options, which are those of `log` and would be called unknown instead.
  if (action === undefined || (action !== 'log' && !action.startsWith('-'))) {
    const problem = action === undefined ? 'no action' : `unknown action "${action}"`
    io.stderr(`gatehouse scim: ${problem}; use "log" or "init"`)
    io.stderr(usage)
    return 2
  }
  const read = readArguments(args, { usage, options, positionals: 1 }, io)
  if ('exit' in read) return read.exit
  const { values, positionals } = read
  const wrong = (message: string): number => {
    io.stderr(`gatehouse scim: ${message}`)
    io.stderr(usage)
    return 2
  }
  if (positionals[0] !== 'log') return wrong(`unknown action "${positionals[0]}"`)
  const limit = wholeNumber(values.limit, 1, maxLimit)
  if (limit === undefined) return wrong(`--limit must be a whole number from 1 to ${maxLimit}`)
  const filters = readFilters(values)
  if (typeof filters === 'string') return wrong(filters)
  const width = terminalWidth()
  const show = values.json === true ? journalJson : (row: StoredJournalEntry) => journalLines(row, width)
  try {
    let printed = 0
    await withDatabase(values, ({ journal }) =>
      tell(journal, filters, limit, values.follow === true, (row) => {
        for (const line of show(row)) io.stdout(line)
        printed++
      }),
    )
    if (printed === 0) io.stderr(nothingFound(values.gateway))
    return 0
  } catch (error) {
    io.stderr(`gatehouse scim: ${error instanceof Error ? error.message : String(error)}`)
    return 1
  }
}

/** On stderr, so that whoever reads the JSON lines gets none. */
const nothingFound = (gateways: readonly string[] = []): string =>
  gateways.length === 0
    ? 'No recorded call matches.'
    : `No recorded call to ${gateways.map((name) => `"${name}"`).join(', ')} matches. --gateway takes the name of an Application.`

interface FilterValues {
  readonly gateway?: string[] | undefined
  readonly failed?: boolean | undefined
  readonly status?: string | undefined
  readonly since?: string | undefined
}

/** The filters, or what is wrong with them. */
function readFilters(values: FilterValues): Filters | string {
  const status = values.status === undefined ? undefined : wholeNumber(values.status, 100, 599)
  if (values.status !== undefined && status === undefined) return '--status must be an HTTP status'
  const since = values.since === undefined ? undefined : parseMoment(values.since, systemClock())
  if (values.since !== undefined && since === undefined) {
    return '--since must be such as 90s, 15m, 1h or 7d, or an ISO 8601 date'
  }
  return {
    ...(values.gateway === undefined ? {} : { journals: values.gateway }),
    ...(values.failed === undefined ? {} : { failed: values.failed }),
    ...(status === undefined ? {} : { status }),
    ...(since === undefined ? {} : { since }),
  }
}

async function tell(
  store: JournalStore,
  filters: Filters,
  limit: number,
  follow: boolean,
  print: (row: StoredJournalEntry) => void,
): Promise<void> {
  let newest = 0
  const tellLatest = async (most: number): Promise<void> => {
    for (const row of await latest(store, filters, most, newest)) {
      print(row)
      newest = Math.max(newest, row.id)
    }
  }
  await tellLatest(limit)
  while (follow) {
    await delay(followEveryMillis)
    await tellLatest(maxLimit)
  }
}

/** The latest rows behind `newest`, oldest first. */
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
  // Each gateway writes its rows when it comes to it, so those of several are not in the order of the calls.
  return rows.sort((a, b) => a.time.getTime() - b.time.getTime() || a.id - b.id)
}
