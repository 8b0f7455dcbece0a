import type { AuditEntry } from '#domain/audit.ts'
import type { SharedAudit } from '#engine/sts/shared-audit.ts'
import type { TokenContent } from '#engine/sts/token-content.ts'
import type { Workload } from '#engine/sts/workload.ts'
import type { Claimant } from '#engine/sts/workload-validation.ts'
import type { Clock } from '#kernel/clock.ts'
import type { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { Logger } from '#kernel/logger.ts'
import { RateLimit } from '#kernel/rate-limit.ts'
import type { Rule } from '#sdk/auth/rule.ts'
import type { TokenCall } from '#sdk/filter/token-service.ts'

export interface AuditParts {
  readonly audit: Pick<SharedAudit, 'append'>
  readonly clock: Clock
  readonly log: Logger
}

type Call = Pick<TokenCall, 'endpoint' | 'requestId' | 'remoteAddress'>

/** Who a refused call claimed to be is not proven, so strangers cannot fill the audit: beyond this they are counted. */
const strangers = { burst: 100, perMinute: 600 }
const longestReason = 500

/**
 * One row for every decision. The details that people filter by are JSON in the row's reason. There are more issuances
 * than everything else together, so their rows are written such that a store can keep them small: one id for row, token
 * and request, and first in the reason what all tokens of a pod have in common.
 */
export class DecisionAudit {
  readonly #parts: AuditParts
  readonly #strangers: RateLimit
  readonly #uncounted = new Map<string, number>()

  constructor(parts: AuditParts) {
    this.#parts = parts
    this.#strangers = new RateLimit(1000, parts.clock)
  }

  /** Rejects when the row could not be written; then no token may leave. */
  async issued(
    call: Call,
    workload: Workload,
    issued: { readonly jti: string; readonly kid: string; readonly rule: Rule; readonly content: TokenContent },
  ): Promise<void> {
    const { jti, kid, rule, content } = issued
    const recurring = {
      kid,
      rule: `${rule.scope} ${rule.constraint}`,
      sub: content.subject,
      ...(workload.namespace === undefined ? { issuer: workload.cluster } : { cluster: workload.cluster }),
      pod: workload.attributes.first('pod-name'),
      podUid: workload.podUid,
      node: workload.attributes.first('node-name'),
      review: workload.byIssuer === true ? 'keys' : workload.offline ? 'offline' : 'online',
      remote: call.remoteAddress,
    }
    const own = { ttl: content.ttlSeconds, credential: workload.attributes.first('credential-id') }
    const start = JSON.stringify(recurring).slice(0, -1)
    await this.#parts.audit.append({
      ...this.#row(call, workload.username, 'issue', `${start},${JSON.stringify(own).slice(1)}`),
      id: jti,
      value: jti,
      recurring: start.length,
    })
  }

  /** Never rejects: the refusal stands whether or not it could be written down, and the log has it then. */
  async refused(call: Call, who: Claimant | undefined, error: GatewayError): Promise<void> {
    let more = 0
    if (who === undefined) {
      more = this.#uncounted.get(call.endpoint) ?? 0
      if (this.#strangers.take(call.endpoint, strangers) !== undefined) {
        this.#uncounted.set(call.endpoint, more + 1)
        return
      }
      this.#uncounted.delete(call.endpoint)
    }
    const reason = {
      error: error.keyword ?? error.code,
      why: error.message.slice(0, longestReason),
      ...(who === undefined || who.username.startsWith('system:serviceaccount:')
        ? { cluster: who?.cluster }
        : { issuer: who.cluster }),
      podUid: who?.podUid,
      remote: call.remoteAddress,
      ...(more === 0 ? {} : { alsoRefused: more }),
    }
    try {
      await this.#parts.audit.append(this.#row(call, who?.username ?? '', 'refuse', JSON.stringify(reason)))
    } catch (err) {
      this.#parts.log.error('a refused token could not be audited', { ...call, reason, err })
    }
  }

  #row(call: Call, username: string, action: 'issue' | 'refuse', reason: string): AuditEntry {
    return {
      id: newId(),
      time: this.#parts.clock(),
      requestor: username,
      subject: username,
      workflow: { id: call.requestId, name: 'sts' },
      target: call.endpoint,
      kind: 'token',
      action,
      attribute: 'jti',
      requestId: call.requestId,
      reason,
    }
  }
}
