import type { AuthHost } from '#sdk/auth/auth-mechanism.ts'
import type { FilterHost } from '#sdk/filter/filter-host.ts'
import type { Issuers } from './service/issuers.ts'

/** What the filters of our own issuers use beside what every filter may use. */
export interface IssuerHost extends FilterHost {
  /** Absent if none are configured. */
  readonly issuers?: Issuers
}

/** What the mechanism that issues tokens at a login uses beside what every mechanism may use. */
export interface TokenHost extends AuthHost {
  readonly issuers?: Issuers
}
