import { silentLogger } from '#kernel/logger.ts'
import type { JobContext } from '#sdk/job/job.ts'
import { type FakeHostOptions, fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import type { MaintenanceHost, MaintenanceTasks } from '#workflows/jobs/maintenance-access.ts'

/** A host for jobs that records the requested maintenance tasks. */
export function fakeJobHost(options: FakeHostOptions = {}): MaintenanceHost & { readonly asked: unknown[] } {
  const asked: unknown[] = []
  const maintenance: MaintenanceTasks = {
    mailOutcomes: async (mails) => asked.push(['mailOutcomes', mails]),
    mailDigests: async (mails) => asked.push(['mailDigests', mails]),
    remindApprovers: async (reminder) => asked.push(['remind', reminder]),
    cleanUp: async (retention) => {
      asked.push(['cleanUp', retention])
      return { runs: 7 }
    },
    revokeExpired: async () => asked.push(['revoke']),
  }
  return { ...fakeModuleHost(options), name: 'nightly', maintenance, asked }
}

export const jobContext = (more: Partial<JobContext> = {}): JobContext => ({
  due: new Date('2025-03-10T02:00:00Z'),
  attempt: 1,
  log: silentLogger,
  signal: new AbortController().signal,
  ...more,
})
