import type { CommandOutput } from '#cli/command-line/command-line.ts'
import {
  defineCommand,
  fitted,
  listItems,
  messageOf,
  operatorName,
  readLimit,
  type Values,
  WrongUsage,
} from '#cli/command-line/command-line.ts'
import { withDatabase } from '#cli/command-line/installation.ts'
import { databaseOptions, outputOption } from '#cli/command-line/options.ts'
import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { MailState, MailSummary } from '#sdk/mail/new-mail.ts'
import type { Storage } from '#server/composition/stores.ts'

const options = {
  ...databaseOptions,
  state: {
    value: 'STATE',
    multiple: true,
    about: 'list: queued, unknown, failed or sent; can be repeated (default unknown and failed)',
  },
  limit: { value: 'N', default: '50', about: 'list: number of mails of each state' },
  reason: { value: 'TEXT', about: 'retry: reason, for the audit' },
  by: { value: 'NAME', about: 'retry: name of the operator, for the audit (default the system user)' },
  ...outputOption,
} as const

export const mailCommand = defineCommand({
  name: 'mail',
  about: 'List unsent mail and send it again.',
  options,
  actions: {
    list: {
      usage: '[--state STATE] [options]',
      about: 'List mails that failed or may not have arrived',
      run: list,
    },
    retry: {
      usage: 'ID [--reason TEXT] [options]',
      arguments: ['ID'],
      about: 'Queue a mail again that failed or may not have arrived',
      run: retry,
    },
  },
  examples: ['gatehouse mail list --state failed', 'gatehouse mail retry ID --reason "mail server is back"'],
  describe: (error) =>
    error instanceof GatewayError && error.code === 'CONFLICT'
      ? 'only a mail that failed or may not have arrived can be sent again'
      : messageOf(error),
})

const states: readonly MailState[] = ['queued', 'unknown', 'failed', 'sent']
const maxText = 2_000

async function list(values: Values<typeof options>, _: readonly string[], io: CommandOutput): Promise<void> {
  const wanted = values.state.length === 0 ? (['unknown', 'failed'] as const) : values.state.map(readState)
  const limit = readLimit(values.limit)
  await withDatabase(values, async ({ mails }) => {
    async function* all(): AsyncGenerator<MailSummary> {
      for (const state of new Set(wanted)) {
        yield* listItems(async (most, after) => {
          const page = await mails.list({ state, limit: most, after })
          return { items: page.mails, next: page.next }
        }, limit)
      }
    }
    await io.list(all(), {
      lines: (mail) => fitted(mailLines(mail)),
      noun: `mails in the state ${[...new Set(wanted)].join(' or ')}`,
    })
  })
}

function readState(word: string): MailState {
  const known = states.find((state) => state === word)
  if (known === undefined) throw new WrongUsage(`--state must be one of ${states.join(', ')}`)
  return known
}

function mailLines({ id, state, recipient, subject, run, error, updated }: MailSummary): string[] {
  const of = run === undefined ? '' : `, of run ${run}`
  const line = `${updated.toISOString()} ${state.padEnd(7)} ${id} to ${recipient}: ${subject}${of}`
  return error === undefined ? [line] : [line, `    ${error}`]
}

async function retry(values: Values<typeof options>, [id = '']: readonly string[], io: CommandOutput): Promise<void> {
  const { reason } = values
  const by = operatorName(values.by)
  if ((reason ?? '').length > maxText || by.length > maxText) {
    throw new WrongUsage(`--reason and --by have at most ${maxText} characters`)
  }
  await withDatabase(values, async (storage) => {
    const mail = await storage.mails.get(id)
    if (mail === undefined) throw new Error(`there is no mail "${id}"`)
    await storage.mails.retry(id, [await retryRow(storage, mail, by, reason)])
    io.stdout(`${id} is queued`)
    io.result({ id, state: 'queued' })
  })
}

/** The subject of a mail without a run is its recipient. */
async function retryRow({ runs }: Storage, mail: MailSummary, by: string, reason?: string): Promise<AuditEntry> {
  const run = mail.run === undefined ? undefined : await runs.get(mail.run)
  return {
    id: newId(),
    time: systemClock(),
    requestor: by,
    subject: run?.head.subject ?? mail.recipient,
    workflow: { id: mail.run ?? mail.id, name: run?.head.workflow ?? 'mail' },
    target: 'gatehouse',
    kind: 'entry',
    action: 'replace',
    attribute: 'mail',
    value: `retry ${mail.id}`,
    ...(reason === undefined || reason === '' ? {} : { reason }),
  }
}
