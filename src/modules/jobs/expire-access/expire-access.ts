import { defineJob } from '#sdk/job/job.ts'
import { readParameters } from '#sdk/module/parameters.ts'

/** Removes access that has expired. */
export default defineJob({
  className: 'jobs.ExpireAccess',
  parameters: {},
  parse: (params, issues, context) => readParameters({}, params, issues, context),
  create: (_, host) => ({ run: async ({ signal }) => ({ grants: await host.chores.revokeExpired(signal) }) }),
})
