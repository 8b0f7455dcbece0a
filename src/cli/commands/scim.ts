import { setTimeout as delay } from 'node:timers/promises'
import type { CommandOutput } from '#cli/command-line/command-line.ts'
import {
  defineCommand,
  maxLimit,
  pageSize,
  readLimit,
  readTime,
  terminalLine,
  terminalWidth,
  type Values,
  WrongUsage,
  wholeNumber,
} from '#cli/command-line/command-line.ts'
import { withDatabase } from '#cli/command-line/installation.ts'
import { databaseOptions, outputOption } from '#cli/command-line/options.ts'
import { scimInit } from '#cli/init/scim.ts'
import { scimTokenCommand } from '#cli/scim/scim-token.ts'
import type { JournalPage, JournalQuery, StoredJournalEntry } from '#features/scim/journal/journal-entry.ts'
import type { JournalStore } from '#features/scim/journal/journal-store.ts'
import { isJsonObject, type JsonValue } from '#kernel/json.ts'

const options = {
  ...databaseOptions,
  gateway: {
    value: 'NAME',
    multiple: true,
    about: 'Only calls to the gateways of this Application; can be repeated',
  },
  failed: { about: 'Only calls with status 400 or above' },
  status: { value: 'N', about: 'Only calls with this status' },
  since: {
    value: 'TIME',
    about: 'Only calls from this time on: 90s, 15m, 1h or 7d (ago), or an ISO 8601 date',
  },
  limit: { value: 'N', default: '50', about: 'Number of calls' },
  follow: { about: 'Keep printing new calls; with --output json, one per line' },
  ...outputOption,
} as const

export const scimCommand = defineCommand({
  name: 'scim',
  about: 'Set up SCIM gateways, manage tokens of their clients and read their journal.',
  options,
  actions: {
    log: {
      usage: '[options]',
      about: 'Print the latest calls to SCIM gateways, oldest first; takes the options below',
      run: log,
    },
    init: {
      usage: '--client NAME --url URL [--out DIR]',
      about: 'Write the configuration of a SCIM gateway for an identity provider; see "gatehouse scim init --help"',
      command: scimInit,
    },
    token: {
      usage: 'create|rotate|list|revoke [options]',
      about: 'Manage the tokens of SCIM clients; see "gatehouse scim token --help"',
      command: scimTokenCommand,
    },
  },
  examples: ['gatehouse scim log --failed --since 1h', 'gatehouse scim log --gateway scim-entra --follow'],
})

const followEveryMillis = 1000

type Filters = Omit<JournalQuery, 'limit' | 'after'>

async function log(values: Values<typeof options>, _: readonly string[], io: CommandOutput): Promise<void> {
  const [limit, filters] = [readLimit(values.limit), readFilters(values)]
  const width = terminalWidth()
  const form = { lines: (row: StoredJournalEntry) => journalLines(row, width), json: wireCall }
  const hint = values.gateway.length === 0 ? undefined : '--gateway takes the name of an Application.'
  await withDatabase(values, async ({ journal }) => {
    if (values.follow) return followCalls(journal, filters, limit, (row) => io.item(row, form))
    return io.list(await latest(journal, filters, limit, 0), { ...form, noun: 'recorded calls', filters, hint })
  })
}

function readFilters(values: Values<typeof options>): Filters {
  const status = values.status === undefined ? undefined : wholeNumber(values.status, 100, 599)
  if (values.status !== undefined && status === undefined) throw new WrongUsage('--status must be an HTTP status')
  const since = readTime('since', values.since)
  return {
    ...(values.gateway.length === 0 ? {} : { journals: values.gateway }),
    ...(values.failed ? { failed: true } : {}),
    status,
    since,
  }
}

/** Ends with an error only. */
async function followCalls(
  store: JournalStore,
  filters: Filters,
  limit: number,
  print: (row: StoredJournalEntry) => void,
): Promise<never> {
  let newest = 0
  const printLatest = async (most: number): Promise<void> => {
    for (const row of await latest(store, filters, most, newest)) {
      print(row)
      newest = Math.max(newest, row.id)
    }
  }
  await printLatest(limit)
  for (;;) {
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
      after,
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
  const dryRun = row.dryRun === true ? ' dry run' : ''
  const failed = error === undefined ? [] : [keyword === undefined ? error : `${keyword}: ${error}`]
  const changed = operations === undefined ? [] : [describeOperations(operations)]
  const runs = workflows.length > maxRuns ? `${workflows.length} runs` : workflows.map((run) => `run ${run}`).join(', ')
  const detailed = failed.length > 0 || changed.length > 0 || workflows.length > 0
  const origin = [journal, caller, `request ${requestId}`, runs].filter((text) => text !== '').join(', ')
  const lines = [
    `${time.toISOString()} ${status} ${method.padEnd(6)} ${path} (${millis} ms)${dryRun}`,
    ...[...failed, ...changed.filter((text) => text !== ''), ...(detailed ? [origin] : [])].map(
      (text) => `    ${text}`,
    ),
  ]
  return lines.map((line) => terminalLine(line, width))
}

export const wireCall = ({ journal, keyword: scimType, ...row }: StoredJournalEntry) => ({
  gateway: journal,
  ...row,
  scimType,
})

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
