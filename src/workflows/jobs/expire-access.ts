import { defineJob } from '#sdk/job/job.ts'
import { withParameters } from '#sdk/module/parameters.ts'
import type { MaintenanceHost } from './maintenance-access.ts'

/** Removes access that has expired. */
export default defineJob({
  className: 'jobs.ExpireAccess',
  ...withParameters({}),
  create: (_, host: MaintenanceHost) => ({
    run: async ({ signal }) => ({ grants: await host.maintenance.revokeExpired(signal) }),
  }),
})
