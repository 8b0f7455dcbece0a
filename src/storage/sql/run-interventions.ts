import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { SqlTransaction } from '#storage/client/sql-client.ts'
import { isStorable } from '#storage/client/text-keys.ts'
import type { CancelRequest, Intervention, RunEffects, RunState } from '#storage/run-store.ts'
import { closeWaits } from '#storage/sql/approval-writes.ts'
import { writeEffects } from '#storage/sql/run-effects.ts'
import type { StoredCancellation, SummaryRow } from '#storage/sql/run-records.ts'
import { runStatements } from '#storage/sql/run-statements.ts'
import type { Woken } from '#storage/sql/wake-up.ts'
import { finishTimers } from '#storage/timer-store.ts'

type LockedRun = SummaryRow & { readonly now: number }

async function lock(tx: SqlTransaction, id: string): Promise<LockedRun | undefined> {
  if (!isStorable(id)) return undefined
  const [run] = await tx.query(runStatements(tx.dialect).lock({ id }))
  return run
}

async function lockAsShown(tx: SqlTransaction, { id, fence }: Intervention): Promise<LockedRun> {
  const run = await lock(tx, id)
  if (run === undefined) throw new GatewayError('NOT_FOUND', `no run ${id}`)
  if (run.fence !== fence) {
    throw new GatewayError('VERSION_MISMATCH', `the run ${id} has fence ${run.fence}, not ${fence}`)
  }
  return run
}

/** From `waiting` to `ready`. */
export async function signalRun(
  tx: SqlTransaction,
  id: string,
  signal: JsonObject,
  effects: RunEffects,
): Promise<Woken<boolean>> {
  const run = await lock(tx, id)
  if (run === undefined || run.state !== 'waiting') return { value: false, ready: [] }
  await finishTimers(tx, effects.doneTimers ?? [])
  await closeWaits(tx, id, run.now)
  await tx.run(runStatements(tx.dialect).goOn({ id, signal: JSON.stringify(signal), data: null }))
  const started = await writeEffects(tx, effects, run.now, id)
  return { value: true, ready: [id, ...started] }
}

/** From `incident` to `ready`. */
export async function resumeRun(
  tx: SqlTransaction,
  intervention: Intervention,
  data: JsonObject | undefined,
): Promise<Woken<void>> {
  const { id, state, now } = await lockAsShown(tx, intervention)
  if (state !== 'incident') throw new GatewayError('CONFLICT', `the run ${id} is ${state}`)
  await finishTimers(tx, intervention.effects.doneTimers ?? [])
  const text = data === undefined ? null : JSON.stringify(data)
  await tx.run(runStatements(tx.dialect).goOn({ id, signal: null, data: text }))
  const started = await writeEffects(tx, intervention.effects, now, id)
  return { value: undefined, ready: [id, ...started] }
}

export async function cancelRun(tx: SqlTransaction, request: CancelRequest): Promise<Woken<RunState>> {
  const { effects, onlyUntouched, outcome, cancellation } = request
  const run = await lockAsShown(tx, request)
  const { id, state, now } = run
  if (run.ended !== null) throw new GatewayError('CONFLICT', `the run ${id} is ${state}`)
  if (onlyUntouched && (run.touched !== 0 || state === 'running')) {
    throw new GatewayError('CONFLICT', `the run ${id} has changed a target`, {
      publicText: 'This can no longer be withdrawn.',
    })
  }
  await finishTimers(tx, effects.doneTimers ?? [])
  const cancel: StoredCancellation = { ...cancellation, outcome }
  const { askToEnd, end } = runStatements(tx.dialect)
  if (state === 'running') {
    await tx.run(askToEnd({ id, cancel: JSON.stringify(cancel) }))
    return { value: state, ready: await writeEffects(tx, effects, now, id) }
  }
  const [ended] = await tx.query(end({ id, state: outcome, cancel: JSON.stringify(cancel) }))
  await closeWaits(tx, id, now)
  const started = await writeEffects(tx, effects, now, id)
  const following = ended === undefined || ended.following === null ? [] : [ended.following]
  return { value: outcome, ready: [...following, ...started] }
}
