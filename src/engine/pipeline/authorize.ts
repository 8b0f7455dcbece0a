import type { Step } from '#engine/pipeline/passage.ts'
import { applyResults } from '#engine/pipeline/result-actions.ts'
import type { Url } from '#engine/pipeline/routes.ts'
import type { RuleEvaluator } from '#engine/pipeline/rule-evaluator.ts'
import type { Subject } from '#identity/subject.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'

/**
 * Any rule of the URL passes; no rule denies. Decisions are remembered for azTimeoutMillis per subject and URL. The
 * subject is the very object the mechanism gave, so a decision never outlives the credential it was made for.
 */
export const authorize = (rules: RuleEvaluator, clock: Clock): Step => {
  const remembered = new WeakMap<Url, WeakMap<Subject, { allowed: boolean; until: number }>>()
  return async (passage) => {
    const { url: match, subject, application } = passage
    if (match === undefined || subject === undefined || application === undefined) {
      throw new Error('authorization needs a matched, authenticated request')
    }
    const { url } = match
    let decisions = remembered.get(url)
    if (decisions === undefined) {
      decisions = new WeakMap()
      remembered.set(url, decisions)
    }
    const now = clock().getTime()
    const earlier = decisions.get(subject)
    let allowed = earlier !== undefined && earlier.until > now ? earlier.allowed : undefined
    if (allowed === undefined) {
      const decision = await rules.decide(subject, url.rules)
      allowed = decision.allowed
      decisions.set(subject, { allowed, until: now + application.azTimeoutMillis })
    }
    if (allowed) return applyResults(url.results.azSuccess, passage)
    const instead = applyResults(url.results.azFail, passage)
    if (instead !== undefined) return instead
    throw new GatewayError('ACCESS_DENIED', `no rule of ${url.at} allows ${subject.dn}`)
  }
}
