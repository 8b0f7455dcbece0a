import type { PodEndpoint } from '#protocols/admission/pod-endpoint.ts'
import type { FilterHost } from '#sdk/filter/filter-host.ts'
import type { PodAdmission } from './service/pod-admission.ts'
import type { TokenIssuing } from './service/token-issuing.ts'

/** What the filters of the token service use beside what every filter may use. */
export interface StsHost extends FilterHost {
  /** The token endpoints; absent if none are configured. */
  readonly tokens?: TokenIssuing | undefined
  /** The endpoints of the token service that have an injector. None if absent. */
  readonly stsPodEndpoints?: readonly PodEndpoint[]
  /** Writes a decision of the injector to the audit, within about a second. Never rejects. */
  recordAdmission?(admission: PodAdmission): Promise<void>
}
