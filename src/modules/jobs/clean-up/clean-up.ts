import { defineJob } from '#sdk/job.ts'
import { wholeNumber } from '#sdk/parameter-types.ts'
import { readParameters } from '#sdk/parameters.ts'

/** Nobody means to keep anything longer than this and to count the days. */
const max = 36_500
const days = (about: string, fallback: number, min = 1) => wholeNumber({ about, fallback, min, max })

const parameters = {
  runsDays: days('Ended runs of workflows, with their steps and approvals.', 90),
  mailsDays: days('Mails that were sent or given up.', 30),
  idempotencyKeysDays: days('Idempotency keys of calls; a call repeated later is a new one.', 7),
  jobRunsDays: days('When which job ran.', 90),
  auditDays: days('Audit records; `0` keeps all.', 0, 0),
}

/** Forgets what has been kept long enough. */
export default defineJob({
  className: 'jobs.CleanUp',
  parameters,
  parse: (params, issues, context) => readParameters(parameters, params, issues, context),
  create: ({ runsDays, mailsDays, idempotencyKeysDays, jobRunsDays, auditDays }, host) => ({
    run: ({ signal }) =>
      host.chores.cleanUp(
        {
          runs: runsDays,
          mails: mailsDays,
          idempotencyKeys: idempotencyKeysDays,
          jobRuns: jobRunsDays,
          ...(auditDays === 0 ? {} : { audit: auditDays }),
        },
        signal,
      ),
  }),
})
