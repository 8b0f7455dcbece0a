import type { AuthHost } from '#sdk/auth/auth-mechanism.ts'
import type { SecondFactors } from './second-factors.ts'

/** What mechanisms with second factors use beside what every mechanism may use. */
export interface FactorHost extends AuthHost {
  readonly secondFactors: SecondFactors
}
