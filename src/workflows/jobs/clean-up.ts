import { defineJob } from '#sdk/job/job.ts'
import { wholeNumber } from '#sdk/module/parameter-types.ts'
import { withParameters } from '#sdk/module/parameters.ts'
import type { MaintenanceHost, Retention } from './maintenance-access.ts'

/** A longer time is a mistake in the configuration. */
const max = 36_500
const days = (about: string, fallback: number, min = 1) => wholeNumber({ about, fallback, min, max })

const records = (about: string) => wholeNumber({ about, fallback: 0, min: 0, max: 1_000_000_000 })

/** Deletes data whose retention has ended. */
export default defineJob({
  className: 'jobs.CleanUp',
  ...withParameters({
    runsDays: days(
      'Runs of workflows that ended so many days ago, with their steps and approvals. Runs that wait and incidents stay.',
      90,
    ),
    mailsDays: days('Mails that were sent or given up.', 30),
    idempotencyKeysDays: days('Idempotency keys of calls; a call repeated later is a new one.', 7),
    jobRunsDays: days('When which job ran.', 90),
    auditDays: days('Audit records; `0` keeps all.', 0, 0),
    auditRecords: records('The most audit records without those of tokens: beyond that the oldest go; `0` keeps all.'),
    tokenAuditDays: days(
      'Audit records of issued and refused tokens; `0` keeps them as long as `auditDays` says.',
      0,
      0,
    ),
    tokenAuditRecords: records('The most audit records of tokens: beyond that the oldest go; `0` keeps all.'),
  }),
  create: ({ runsDays, mailsDays, idempotencyKeysDays, jobRunsDays, ...audit }, host: MaintenanceHost) => ({
    run: ({ signal }) =>
      host.maintenance.cleanUp(
        {
          runs: runsDays,
          mails: mailsDays,
          idempotencyKeys: idempotencyKeysDays,
          jobRuns: jobRunsDays,
          ...kept('audit', audit.auditDays, audit.auditRecords),
          ...kept('tokens', audit.tokenAuditDays || audit.auditDays, audit.tokenAuditRecords),
        },
        signal,
      ),
  }),
})

/** 0 sets no limit. */
function kept(part: 'audit' | 'tokens', days: number, records: number): Pick<Retention, 'audit' | 'tokens'> {
  if (days === 0 && records === 0) return {}
  return { [part]: { ...(days === 0 ? {} : { days }), ...(records === 0 ? {} : { records }) } }
}
