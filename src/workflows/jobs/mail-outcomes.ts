import { defineJob } from '#sdk/job/job.ts'
import { flag, parsedList, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { withParameters } from '#sdk/module/parameters.ts'
import type { MaintenanceHost } from './maintenance-access.ts'
import { type MailedOutcome, mailedOutcomes } from './maintenance-access.ts'

const hourMillis = 3600_000

/** Mails requesters what became of their requests. */
export default defineJob({
  className: 'jobs.MailOutcomes',
  ...withParameters({
    outcomes: parsedList<MailedOutcome>('outcome', readOutcome, {
      about: `Which of \`${mailedOutcomes.join('`, `')}\` are mailed. \`incident\` is a request on hold. Denials are mailed by the approval itself.`,
      fallback: ['completed', 'expired', 'failed', 'cancelled', 'incident'],
    }),
    hours: wholeNumber({
      about: 'How far the job looks back. An outcome is mailed once, even if several runs of the job see it.',
      fallback: 24,
      min: 1,
      max: 168,
    }),
    summary: flag({
      about:
        '`"true"`: one mail for each requester with all outcomes of these hours, for a job that runs once in that time.',
    }),
    mailAttributeName: text({ about: "The attribute of requesters' addresses.", fallback: 'mail' }),
    notifier: text({
      about: 'The [Notifier](../kinds/Notifier.md) that sends the mails; the default one when absent.',
      reference: 'notifier',
    }),
    limit: wholeNumber({
      about: 'Maximum number of outcomes in one run of the job, latest first.',
      fallback: 10_000,
      min: 1,
      max: 100_000,
    }),
  }),
  create: ({ outcomes, hours, summary, mailAttributeName, notifier, limit }, host: MaintenanceHost) => ({
    async run({ due, signal }) {
      const mails = await host.maintenance.mailOutcomes({
        outcomes,
        since: new Date(due.getTime() - hours * hourMillis),
        until: due,
        ...(summary ? { summary: `${host.name}/${due.toISOString()}` } : {}),
        mailAttribute: mailAttributeName,
        notifier,
        limit,
        signal,
      })
      return { mails }
    },
  }),
})

function readOutcome(written: string): MailedOutcome {
  const outcome = mailedOutcomes.find((known) => known === written)
  if (outcome === undefined) throw new Error(`must be one of ${mailedOutcomes.join(', ')}, not "${written}"`)
  return outcome
}
