import type { FilterHost } from '#sdk/filter/filter-host.ts'
import type { RunService } from '#workflows/runs/run-service.ts'
import type { Registrations } from './service/registrations.ts'

/** What registration forms use beside what every filter may use. */
export interface RegistrationHost extends FilterHost {
  readonly registrations: Registrations
  readonly runs: RunService
}
