import { userInfo } from 'node:os'
import type { AuditEntry } from '#domain/audit.ts'
import type { MailState, MailSummary } from '#domain/mail.ts'
import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import { readArguments } from '#server/commands/arguments.ts'
import type { CommandIo, RunCommand } from '#server/commands/commands.ts'
import { databaseOptions, databaseUsage, withDatabase } from '#server/commands/open-database.ts'
import { terminalLine, terminalWidth } from '#server/commands/terminal-line.ts'
import { wholeNumber } from '#server/commands/whole-number.ts'
import type { Storage } from '#storage/open.ts'

const usage = `Usage: gatehouse mail list [--state STATE] [OPTIONS]
       gatehouse mail retry ID [--reason TEXT] [OPTIONS]

list   Print mails of the outbox; without --state, those that failed or may not have arrived
retry  Queue a mail again that failed or may not have arrived

${databaseUsage}
  --state STATE     list: queued, unknown, failed or sent; may repeat
  --limit N         list: at most this many of each state (50)
  --json            list: one JSON object per line
  --reason TEXT     retry: why, for the audit
  --by NAME         retry: who does it, for the audit (the user of this system)`

const options = {
  ...databaseOptions,
  state: { type: 'string', multiple: true },
  limit: { type: 'string', default: '50' },
  json: { type: 'boolean' },
  reason: { type: 'string' },
  by: { type: 'string' },
} as const

const states: readonly MailState[] = ['queued', 'unknown', 'failed', 'sent']
const maxLimit = 100_000
const pageSize = 500
const maxText = 2_000

class WrongUsage extends Error {}

const read = (args: string[], io: CommandIo) =>
  readArguments(args, { usage, options, positionals: args[0] === 'list' ? 1 : 2 }, io)
type Values = Extract<ReturnType<typeof read>, { values: unknown }>['values']

/** `gatehouse mail list|retry`. */
export const mailCommand: RunCommand = async (args, io) => {
  const given = read(args, io)
  if ('exit' in given) return given.exit
  const { values, positionals } = given
  const [word = '', id = ''] = positionals
  try {
    const action = word === 'list' ? list(values) : word === 'retry' ? retry(values, id) : undefined
    if (action === undefined) throw new WrongUsage(`unknown action "${word}"`)
    return await withDatabase(values, (storage) => action(storage, io))
  } catch (error) {
    io.stderr(`gatehouse mail: ${messageOf(error)}`)
    if (!(error instanceof WrongUsage)) return 1
    io.stderr(usage)
    return 2
  }
}

type Action = (storage: Storage, io: CommandIo) => Promise<number>

/** Usage is checked before the database is opened. */
function list({ state, limit, json }: Values): Action {
  const wanted = (state ?? ['unknown', 'failed']).map((word) => {
    const known = states.find((candidate) => candidate === word)
    if (known === undefined) throw new WrongUsage(`--state must be one of ${states.join(', ')}`)
    return known
  })
  const most = wholeNumber(limit, 1, maxLimit)
  if (most === undefined) throw new WrongUsage(`--limit must be a whole number from 1 to ${maxLimit}`)
  return async ({ mails }, io) => {
    const width = terminalWidth()
    for (const each of new Set(wanted)) {
      let left = most
      let after: string | undefined
      do {
        const query = { state: each, limit: Math.min(pageSize, left) }
        const page = await mails.list(after === undefined ? query : { ...query, after })
        for (const mail of page.mails) {
          for (const line of json === true ? [JSON.stringify(mail)] : mailLines(mail, width)) io.stdout(line)
        }
        left -= page.mails.length
        after = page.next
      } while (after !== undefined && left > 0)
    }
    return 0
  }
}

function mailLines({ id, state, recipient, subject, run, error, updated }: MailSummary, width: number): string[] {
  const of = run === undefined ? '' : `, of run ${run}`
  const lines = [`${updated.toISOString()} ${state.padEnd(7)} ${id} to ${recipient}: ${subject}${of}`]
  if (error !== undefined) lines.push(`    ${error}`)
  return lines.map((line) => terminalLine(line, width))
}

function retry({ reason, by = `${userInfo().username} (command line)` }: Values, id: string): Action {
  for (const text of [reason, by]) {
    if (text !== undefined && text.length > maxText) throw new WrongUsage(`a text has at most ${maxText} characters`)
  }
  return async (storage, io) => {
    const mail = await storage.mails.get(id)
    if (mail === undefined) throw new Error(`there is no mail "${id}"`)
    await storage.mails.retry(id, [await retryRow(storage, mail, by, reason)])
    io.stdout(`${id} is queued`)
    return 0
  }
}

/** A mail that belongs to no run is about whom it goes to. */
async function retryRow({ runs }: Storage, mail: MailSummary, by: string, reason?: string): Promise<AuditEntry> {
  const run = mail.run === undefined ? undefined : await runs.get(mail.run)
  return {
    id: newId(),
    time: systemClock(),
    requestor: by,
    subject: run?.subject ?? mail.recipient,
    workflow: { id: mail.run ?? mail.id, name: run?.name ?? 'mail' },
    target: 'gatehouse',
    kind: 'entry',
    action: 'replace',
    attribute: 'mail',
    value: `retry ${mail.id}`,
    ...(reason === undefined || reason === '' ? {} : { reason }),
  }
}

function messageOf(error: unknown): string {
  if (error instanceof GatewayError && error.code === 'CONFLICT') {
    return 'only a mail that was given up, or of which nobody knows whether it arrived, is sent again'
  }
  return error instanceof Error ? error.message : String(error)
}
