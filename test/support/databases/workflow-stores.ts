import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { RunHead } from '#sdk/workflow/run-head.ts'
import type { Storage } from '#server/composition/stores.ts'
import { openStores, type Stores } from '#testing/databases/stores.ts'
import { runHead } from '#testing/workflows/run-head.ts'
import { userRef } from '#testing/workflows/user-ref.ts'
import type { NewApproval } from '#workflows/record/approval.ts'
import { claimOf, type Run, type StepRecord, type StoredRun } from '#workflows/record/run.ts'
import type { NewRun, NextState, RunEffects, StepCommit } from '#workflows/store/run-commit.ts'
import type { RunStore } from '#workflows/store/run-store.ts'
import type { WakeUp } from '#workflows/store/wake-up.ts'

/** With the runs that woke workers. */
interface WorkflowStores extends Stores {
  readonly woken: string[]
}

export async function workflowStores(url: string): Promise<WorkflowStores> {
  const woken: string[] = []
  const wake: WakeUp = { committed: (runs) => void woken.push(...runs) }
  return { ...(await openStores(url, { wake })), woken }
}

export const minute = 60_000
/** A lease that has expired when it begins. */
export const noLease = -1

/** A head has `id` where it names none. */
export const newRun = (
  id: string,
  { head, ...more }: Partial<Omit<NewRun, 'head'>> & { readonly head?: Partial<RunHead> } = {},
): NewRun => ({ head: runHead({ id, subject: `subject of ${id}`, ...head }), data: { step: 0 }, ...more })

export const auditRow = (id: string, more: Partial<AuditEntry> = {}): AuditEntry => ({
  id,
  time: new Date(Date.UTC(2030, 0, 1)),
  requestor: 'alice',
  subject: 'bob',
  workflow: { id: 'run', name: 'create-user' },
  target: 'people',
  kind: 'attribute',
  action: 'add',
  attribute: 'mail',
  value: 'bob@example.com',
  ...more,
})

export const newApproval = (id: string, more: Partial<NewApproval> = {}): NewApproval => ({
  id,
  step: 1,
  label: 'Manager approval',
  approvers: [userRef('Boss'), userRef('deputy')],
  allowSelf: false,
  rules: [{ scope: 'group', constraint: 'managers' }],
  data: { note: 'please' },
  timers: [{ id: `timer of ${id}`, kind: 'escalation', due: { inMillis: noLease } }],
  mails: [],
  ...more,
})

export const commitOf = (run: Pick<Run, 'head' | 'fence'>, next: NextState, effects: RunEffects = {}): StepCommit => ({
  run: claimOf(run),
  next,
  data: { step: 1 },
  touched: false,
  effects,
})

/** A run that waits for an approval. */
export async function openApproval(
  { runs }: Pick<Storage, 'runs'>,
  id: string,
  more: Partial<NewApproval> = {},
): Promise<void> {
  await runs.start(newRun(`run of ${id}`, { state: { state: 'waiting' } }), { approval: newApproval(id, more) })
}

/** The number of successes, and the error codes of the others. */
export function outcomes(settled: readonly PromiseSettledResult<unknown>[]): { done: number; refused: string[] } {
  const refused = settled.flatMap((each) =>
    each.status === 'rejected' ? [String((each.reason as { code?: unknown }).code ?? each.reason)] : [],
  )
  return { done: settled.length - refused.length, refused }
}

export const stepRecord = (number: number, more: Partial<StepRecord> = {}): StepRecord => ({
  number,
  attempt: 1,
  task: `create-user:${number}`,
  taskType: 'provision',
  started: new Date(1000),
  ended: new Date(2000),
  outcome: 'done',
  ...more,
})

export async function claimOne(runs: RunStore, leaseMillis = minute): Promise<StoredRun> {
  const [run] = await runs.claim('worker', 1, leaseMillis)
  if (run === undefined) throw new Error('there was nothing to claim')
  return run
}

export async function shown(runs: RunStore, id: string): Promise<StoredRun> {
  const run = await runs.get(id)
  if (run === undefined) throw new Error(`no run ${id}`)
  return run
}
