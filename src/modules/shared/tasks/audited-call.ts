import type { TargetChange, TargetRequest } from '#sdk/target/target.ts'

/**
 * Calls a target so that its change is in the audit even when the target does not report what it did: then `expected`,
 * what was asked of it, is recorded. Where the run is stored, that is written down before the call. Nothing is recorded when the call fails without having reported anything.
 */
export async function auditedCall(
  request: TargetRequest,
  expected: () => readonly TargetChange[],
  call: (request: TargetRequest) => Promise<void>,
): Promise<void> {
  let reported = false
  const audit = (change: TargetChange): void => {
    reported = true
    request.audit(change)
  }
  await request.intend?.(expected())
  await call({ ...request, audit })
  if (reported) return
  for (const change of expected()) request.audit(change)
}
