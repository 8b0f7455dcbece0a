import type { AuditStore } from '#audit/store/audit-store.ts'
import type { Clock } from '#kernel/clock.ts'
import { newId } from '#kernel/ids.ts'
import type { Logger } from '#kernel/logger.ts'
import type { RateLimits } from '#kernel/rate-limit.ts'
import type { PodAdmission } from './pod-admission.ts'

/**
 * Without authentication of the webhook's callers, anyone who reaches it could fill the audit: beyond this number
 * they are only counted.
 */
const most = { burst: 500, perMinute: 3000 }
const longestReasons = 500
/** The API server waits for the response. */
const longestWaitMillis = 1000

interface AdmissionAuditParts {
  readonly audit: Pick<AuditStore, 'append'>
  readonly rateLimits: RateLimits
  readonly clock: Clock
  readonly log: Logger
}

/** One row for every pod that got tokens, or requested some and did not get them. */
export class AdmissionAudit {
  readonly #parts: AdmissionAuditParts
  #uncounted = 0

  constructor(parts: AdmissionAuditParts) {
    this.#parts = parts
  }

  /**
   * Settles when the row is written, or after a second: the decision is final, and the log has it then. Never
   * rejects.
   */
  async record(admission: PodAdmission): Promise<void> {
    const written = this.#write(admission).catch((err: unknown) =>
      this.#parts.log.error('an admission could not be audited', { ...admission, err }),
    )
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, longestWaitMillis)
    })
    await Promise.race([written, late])
    clearTimeout(timer)
  }

  async #write(admission: PodAdmission): Promise<void> {
    const { audit, rateLimits, clock } = this.#parts
    if ((await rateLimits.take('audited admissions', '', most)) !== undefined) {
      this.#uncounted += 1
      return
    }
    const alsoDecided = this.#uncounted
    this.#uncounted = 0
    const { requestId, namespace, serviceAccount, pod, owner, decision, endpoints, reasons } = admission
    const account = `system:serviceaccount:${namespace}:${serviceAccount}`
    const why = reasons.join('; ').slice(0, longestReasons)
    const reason = {
      pod,
      ...(owner === undefined ? {} : { owner }),
      endpoints,
      ...(why === '' ? {} : { why }),
      ...(alsoDecided === 0 ? {} : { alsoDecided }),
    }
    await audit.append([
      {
        id: newId(),
        time: clock(),
        requestor: account,
        subject: account,
        workflow: { id: requestId, name: 'sts' },
        target: 'sts.injector',
        kind: 'pod',
        action: decision === 'injected' ? 'add' : 'refuse',
        attribute: 'tokens',
        value: decision,
        requestId,
        reason: JSON.stringify(reason),
      },
    ])
  }
}
