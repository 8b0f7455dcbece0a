import { GatewayError } from '#kernel/errors.ts'
import { whenValues } from '#storage/client/database-time.ts'
import type { SqlTransaction } from '#storage/client/sql-client.ts'
import type { NextState, RunState, StepCommit } from '#storage/run-store.ts'
import { insertApproval } from '#storage/sql/approval-writes.ts'
import { writeEffects } from '#storage/sql/run-effects.ts'
import type { StoredCancellation } from '#storage/sql/run-records.ts'
import { runStatements } from '#storage/sql/run-statements.ts'
import type { Woken } from '#storage/sql/wake-up.ts'
import { deleteTimersOfRun, finishTimers } from '#storage/timer-store.ts'

const ends: ReadonlySet<RunState> = new Set(['completed', 'failed', 'cancelled'])

/** The run's new state, guarded by its fence, and then everything else. */
export async function commitStep(tx: SqlTransaction, step: StepCommit): Promise<Woken<RunState>> {
  const moved = (await move(tx, step, step.next)) ?? (await moveCancelled(tx, step))
  const { state, now, following } = moved
  const { next, run, effects } = step
  if (state === 'waiting' && next.state === 'waiting' && next.approval !== undefined) {
    await insertApproval(tx, run.id, next.approval, now)
  }
  await finishTimers(tx, effects.doneTimers ?? [])
  if (ends.has(state) && !endsTimers(tx, step)) await deleteTimersOfRun(tx, run.id)
  const started = await writeEffects(tx, effects, now, run.id)
  const own = state === 'ready' && next.state === 'ready' && isNow(next) ? [run.id] : []
  return { value: state, ready: [...own, ...following, ...started] }
}

/** The statement that ends the run ends its timers too, unless one of them has to be there still. */
const endsTimers = ({ dialect }: SqlTransaction, { effects }: StepCommit): boolean =>
  dialect === 'postgres' && effects.doneTimers === undefined

interface Moved {
  readonly state: RunState
  readonly now: number
  /** The run of the same subject that may go on now. */
  readonly following: readonly string[]
}

/** Undefined when the claim is void, or when the run's end was asked for. */
async function move(
  tx: SqlTransaction,
  step: StepCommit,
  next: NextState,
  despiteCancel = false,
): Promise<Moved | undefined> {
  const { keep, leave } = runStatements(tx.dialect)
  const { data, secret, touched } = step
  const { id, fence } = step.run
  const { state } = next
  const final = ends.has(state)
  const common = {
    id,
    fence,
    data: JSON.stringify(data),
    secret: final ? null : (secret ?? null),
    touched: touched ? 1 : 0,
  }
  if (state === 'running') {
    const [row] = await tx.query(keep({ ...common, lease: next.leaseMillis }))
    return row && { state, now: row.updated, following: [] }
  }
  const [row] = await tx.query(
    leave({
      ...common,
      state,
      attempt: state === 'ready' ? next.attempt : 0,
      incident: 'incident' in next ? JSON.stringify(next.incident) : null,
      final: final ? 1 : 0,
      ends_timers: final && endsTimers(tx, step) ? 1 : 0,
      despite_cancel: despiteCancel || final ? 1 : 0,
      ...whenValues(state === 'ready' ? next.due : { inMillis: 0 }),
    }),
  )
  if (row === undefined) return undefined
  // A run that is ready again is the first of its subject, so nobody else of it may go on.
  const following = row.following === null || state === 'ready' ? [] : [row.following]
  return { state, now: row.updated, following }
}

/** A run whose end was asked for ends here, with what its last step did. */
async function moveCancelled(tx: SqlTransaction, step: StepCommit): Promise<Moved> {
  const { id, fence } = step.run
  const [run] = await tx.query(runStatements(tx.dialect).lock({ id }))
  if (run !== undefined && run.state === 'running' && run.fence === fence && run.cancel !== null) {
    const { outcome } = JSON.parse(run.cancel) as StoredCancellation
    const incident = { task: '', code: 'CANCELLED', message: 'the end of the run was asked for' }
    const next: NextState = outcome === 'failed' ? { state: outcome, incident } : { state: outcome }
    const moved = await move(tx, step, next, true)
    if (moved !== undefined) return moved
  }
  throw new GatewayError('VERSION_MISMATCH', `the claim ${fence} of run ${id} is void`)
}

const isNow = ({ due }: Extract<NextState, { state: 'ready' }>): boolean => 'inMillis' in due && due.inMillis <= 0
