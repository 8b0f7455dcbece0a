import { defineJob } from '#sdk/job/job.ts'
import { readParameters } from '#sdk/module/parameters.ts'

/** Takes back access whose time has passed. */
export default defineJob({
  className: 'jobs.ExpireAccess',
  parameters: {},
  parse: (params, issues, context) => readParameters({}, params, issues, context),
  create: (_, host) => ({ run: async ({ signal }) => ({ grants: await host.chores.revokeExpired(signal) }) }),
})
