import type { AuditEntry } from '#domain/audit.ts'
import type { MailState, MailSummary } from '#domain/mail.ts'
import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { CommandIo, RunCommand } from '#server/commands/command-line.ts'
import {
  messageOf,
  operatorName,
  readArguments,
  readLimit,
  runAction,
  terminalLine,
  terminalWidth,
  unknownAction,
  WrongUsage,
} from '#server/commands/command-line.ts'
import { databaseOptions, databaseUsage, withDatabase } from '#server/commands/installation.ts'
import type { Storage } from '#storage/open.ts'

const usage = `List unsent mail and send it again.

Usage:
  gatehouse mail list [--state STATE] [options]
  gatehouse mail retry ID [--reason TEXT] [options]

Actions:
  list   List mails that failed or may not have arrived
  retry  Queue a mail again that failed or may not have arrived

Options:
${databaseUsage}
  --state STATE            list: queued, unknown, failed or sent; can be repeated (default unknown and failed)
  --limit N                list: number of mails of each state (default 50)
  --json                   list: print JSON, one object per line
  --reason TEXT            retry: reason, for the audit
  --by NAME                retry: name of the operator, for the audit (default the system user)`

const options = {
  ...databaseOptions,
  state: { type: 'string', multiple: true },
  limit: { type: 'string', default: '50' },
  json: { type: 'boolean' },
  reason: { type: 'string' },
  by: { type: 'string' },
} as const

const states: readonly MailState[] = ['queued', 'unknown', 'failed', 'sent']
const pageSize = 500
const maxText = 2_000

const read = (args: string[], io: CommandIo) =>
  readArguments(
    args,
    { command: 'mail', usage, options, positionals: args[0] === 'list' ? 1 : 2, names: ['ACTION', 'ID'] },
    io,
  )
type Values = Extract<ReturnType<typeof read>, { values: unknown }>['values']

export const mailCommand: RunCommand = async (args, io) => {
  const given = read(args, io)
  if ('exit' in given) return given.exit
  const { values, positionals } = given
  const [word = '', id = ''] = positionals
  const run = async (): Promise<number> => {
    const action =
      word === 'list' ? list(values) : word === 'retry' ? retry(values, id) : unknownAction(word, ['list', 'retry'])
    return withDatabase(values, (storage) => action(storage, io))
  }
  return runAction('mail', io, run, describe)
}

type Action = (storage: Storage, io: CommandIo) => Promise<number>

/** Each action checks its options before the database is opened. */
function list({ state, limit, json }: Values): Action {
  const wanted = (state ?? ['unknown', 'failed']).map((word) => {
    const known = states.find((candidate) => candidate === word)
    if (known === undefined) throw new WrongUsage(`--state must be one of ${states.join(', ')}`)
    return known
  })
  const most = readLimit(limit)
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

function retry({ reason, by: given }: Values, id: string): Action {
  const by = operatorName(given)
  for (const text of [reason, by]) {
    if (text !== undefined && text.length > maxText)
      throw new WrongUsage(`--reason and --by have at most ${maxText} characters`)
  }
  return async (storage, io) => {
    const mail = await storage.mails.get(id)
    if (mail === undefined) throw new Error(`there is no mail "${id}"`)
    await storage.mails.retry(id, [await retryRow(storage, mail, by, reason)])
    io.stdout(`${id} is queued`)
    return 0
  }
}

/** The subject of a mail without a run is its recipient. */
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

function describe(error: unknown): string {
  if (error instanceof GatewayError && error.code === 'CONFLICT') {
    return 'only a mail that failed or may not have arrived can be sent again'
  }
  return messageOf(error)
}
