import type { PasswordHost } from '#features/passwords/host.ts'
import type { FilterHost } from '#sdk/filter/filter-host.ts'
import type { SecondFactors } from './second-factors/second-factors.ts'

/** What the Account API uses beside what every filter may use. */
export interface AccountHost extends FilterHost, Pick<PasswordHost, 'passwords'> {
  readonly secondFactors: SecondFactors
}
