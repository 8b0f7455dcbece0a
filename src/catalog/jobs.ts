import { createRegistry } from '#kernel/registry.ts'
import cleanUp from '#modules/jobs/clean-up/clean-up.ts'
import expireAccess from '#modules/jobs/expire-access/expire-access.ts'
import javaScriptJob from '#modules/jobs/javascript-job/javascript-job.ts'
import remindApprovers from '#modules/jobs/remind-approvers/remind-approvers.ts'

/** Add a job: one import above, one line below. */
export const jobs = createRegistry('job', [cleanUp, expireAccess, javaScriptJob, remindApprovers])
