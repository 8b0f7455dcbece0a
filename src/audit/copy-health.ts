import { setTimeout as delay } from 'node:timers/promises'
import { shownReason } from '#kernel/secret-values.ts'
import type { AuditSink } from '#sdk/audit/audit-sink.ts'

/** Whether a copy of the audit, or of its anchors, can be written. */
export interface CopyHealth {
  readonly name: string
  /** `unchecked`: nothing was sent yet, and only sending would show it. */
  readonly health: 'up' | 'down' | 'unchecked'
  readonly problem?: string
}

/** A file may be on another machine that doesn't answer. */
const lookMillis = 3_000

/** The result of the last attempt to send; undefined before the first one. */
export type LastAttempt = { readonly problem: string | undefined } | undefined

/** By a look at its place if the sink can have one, otherwise by the last attempt. */
export async function copyHealth(
  name: string,
  sink: Pick<AuditSink, 'problem'>,
  last: LastAttempt,
): Promise<CopyHealth> {
  const late = `no answer within ${lookMillis} ms`
  const look = (): Promise<string | undefined> =>
    Promise.race([sink.problem?.(), delay(lookMillis, late, { ref: false })])
  const known = sink.problem === undefined ? last : { problem: await look() }
  if (known === undefined) return { name, health: 'unchecked' }
  return known.problem === undefined ? { name, health: 'up' } : unavailable(name, known.problem)
}

export const unavailable = (name: string, reason: unknown): CopyHealth => ({
  name,
  health: 'down',
  problem: shownReason(reason).slice(0, 500),
})
