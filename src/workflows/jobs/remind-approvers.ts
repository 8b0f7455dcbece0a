import { defineJob } from '#sdk/job/job.ts'
import { text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { withParameters } from '#sdk/module/parameters.ts'
import type { MaintenanceHost } from './maintenance-access.ts'

/** Sends a mail to approvers with open approvals, once for each due time of the job. */
export default defineJob({
  className: 'jobs.RemindApprovers',
  aliases: ['com.tremolosecurity.provisioning.scheduler.jobs.RemindApprovers'],
  ...withParameters({
    message: text({
      about:
        'The text of the mail; `%L` is the label of the approval, `%D` the number of days it has been open. When absent, a text with both in the language of the approver.',
    }),
    days: wholeNumber({ about: 'Days after which approvers are reminded.', fallback: 1, min: 0, max: 3650 }),
    mailAttributeName: text({
      about: "The attribute of approvers' addresses, for approvals that name none.",
      fallback: 'mail',
    }),
    limit: wholeNumber({
      about: 'Maximum number of approvals in one run, oldest first.',
      fallback: 1000,
      min: 1,
      max: 100_000,
    }),
  }),
  create: ({ message, days, mailAttributeName, limit }, host: MaintenanceHost) => ({
    async run({ due }) {
      const key = `${host.name}/${due.toISOString()}`
      const reminded = await host.maintenance.remindApprovers({
        days,
        key,
        message,
        mailAttribute: mailAttributeName,
        limit,
      })
      return { approvals: reminded }
    },
  }),
})
