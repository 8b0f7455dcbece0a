import { digestClassName } from '#mail/mail-choices.ts'
import { defineJob } from '#sdk/job/job.ts'
import { text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { withParameters } from '#sdk/module/parameters.ts'
import type { MaintenanceHost } from './maintenance-access.ts'

const hourMillis = 3600_000

/** Mails users one digest of what they chose to get so. */
export default defineJob({
  className: digestClassName,
  ...withParameters({
    hours: wholeNumber({
      about:
        'How far the job looks back for outcomes of requests: longer than the time between two runs, so that a missed run loses nothing. A digest never repeats what an earlier one reported.',
      fallback: 72,
      min: 1,
      max: 744,
    }),
    mailAttributeName: text({ about: "The attribute of users' addresses.", fallback: 'mail' }),
    languageAttributeName: text({
      about:
        'The attribute with the language of users who chose none in the portal, such as `de` or `de-CH`. English if there is none.',
      fallback: 'preferredLanguage',
    }),
    notifier: text({
      about: 'The [Notifier](../kinds/Notifier.md) that sends the mails; the default one when absent.',
      reference: 'notifier',
    }),
    limit: wholeNumber({
      about: 'Maximum number of users in one run of the job.',
      fallback: 100_000,
      min: 1,
      max: 1_000_000,
    }),
  }),
  create: ({ hours, mailAttributeName, languageAttributeName, notifier, limit }, host: MaintenanceHost) => ({
    async run({ due, signal }) {
      const mails = await host.maintenance.mailDigests({
        since: new Date(due.getTime() - hours * hourMillis),
        until: due,
        mailAttribute: mailAttributeName,
        languageAttribute: languageAttributeName,
        notifier,
        limit,
        signal,
      })
      return { mails }
    },
  }),
})
