import type { TargetChange, TargetRequest } from '#sdk/target/target.ts'

/**
 * Calls a target so that its change is in the audit even if the target does not report it: then `expected`, the change that
 * was requested, is recorded. A stored run writes `expected` down before the call. Nothing is recorded when the call fails
 * without a report.
 */
export async function auditedCall(
  request: TargetRequest,
  expected: () => readonly TargetChange[],
  call: (request: TargetRequest) => Promise<void>,
): Promise<void> {
  let reported = false
  const audit: TargetRequest['audit'] = (change) => {
    reported = true
    request.audit(change)
  }
  await request.planChanges?.(expected())
  await call({ ...request, audit })
  if (reported) return
  for (const change of expected()) request.audit(change)
}
