import { type RunIdentities, storedIdentity } from '#identity/identity.ts'
import type { JsonObject } from '#kernel/json.ts'
import { type WhenValues, whenValues } from '#storage/client/database-time.ts'
import { assertStorable, lookupKey, optionalText, storable } from '#storage/client/text-keys.ts'
import type {
  Cancellation,
  ClaimedRun,
  FirstState,
  Incident,
  NewRun,
  Run,
  RunState,
  RunSummary,
  StepRecord,
  StoredStep,
} from '#storage/run-store.ts'

export const summaryColumns = [
  'seq',
  'id',
  'name',
  'definition',
  'state',
  'subject',
  'requestor',
  'caller',
  'requestor_identity',
  'caller_identity',
  'subject_identity',
  'reason',
  'request_id',
  'attempt',
  'fence',
  'worker',
  'lease_until',
  'due',
  'deadline',
  'access_ends',
  'incident',
  'cancel',
  'touched',
  'created',
  'updated',
  'ended',
] as const

export interface SummaryRow extends IdentityColumns {
  readonly seq: number
  readonly id: string
  readonly name: string
  readonly definition: string
  readonly state: RunState
  readonly subject: string
  readonly requestor: string
  readonly caller: string | null
  readonly reason: string | null
  readonly request_id: string | null
  readonly attempt: number
  readonly fence: number
  readonly worker: string | null
  readonly lease_until: number
  readonly due: number
  readonly deadline: number | null
  readonly access_ends: number | null
  readonly incident: string | null
  readonly cancel: string | null
  readonly touched: number
  readonly created: number
  readonly updated: number
  readonly ended: number | null
}

export interface ClaimedRow extends SummaryRow {
  readonly data: string
  readonly signal: string | null
  readonly secret: string | null
}

/** A cancellation as it is kept until the run ends. */
export interface StoredCancellation extends Cancellation {
  readonly outcome: 'cancelled' | 'failed'
}

export function toSummary(row: SummaryRow): RunSummary {
  return {
    id: row.id,
    name: row.name,
    definition: row.definition,
    state: row.state,
    subject: row.subject,
    requestor: row.requestor,
    who: identitiesIn(row),
    attempt: row.attempt,
    fence: row.fence,
    due: new Date(row.due),
    touched: row.touched !== 0,
    created: new Date(row.created),
    updated: new Date(row.updated),
    ...(row.caller === null ? {} : { caller: row.caller }),
    ...(row.reason === null ? {} : { reason: row.reason }),
    ...(row.request_id === null ? {} : { requestId: row.request_id }),
    ...(row.worker === null ? {} : { worker: row.worker, leaseUntil: new Date(row.lease_until) }),
    ...(row.deadline === null ? {} : { deadline: new Date(row.deadline) }),
    ...(row.access_ends === null ? {} : { accessEnds: new Date(row.access_ends) }),
    ...(row.incident === null ? {} : { incident: JSON.parse(row.incident) as Incident }),
    ...(row.cancel === null ? {} : { cancel: cancellationOf(row.cancel) }),
    ...(row.ended === null ? {} : { ended: new Date(row.ended) }),
  }
}

export interface IdentityColumns {
  readonly requestor_identity: string | null
  readonly caller_identity: string | null
  readonly subject_identity: string | null
}

export const identitiesIn = ({
  requestor_identity,
  caller_identity,
  subject_identity,
}: IdentityColumns): RunIdentities => ({
  ...(requestor_identity === null ? {} : { requestor: storedIdentity(requestor_identity) }),
  ...(caller_identity === null ? {} : { caller: storedIdentity(caller_identity) }),
  ...(subject_identity === null ? {} : { subject: storedIdentity(subject_identity) }),
})

function cancellationOf(text: string): Cancellation {
  const { by, reason } = JSON.parse(text) as StoredCancellation
  return { by, ...(reason === undefined ? {} : { reason }) }
}

export const toRun = (row: SummaryRow & { readonly data: string }): Run => ({
  ...toSummary(row),
  data: JSON.parse(row.data) as JsonObject,
})

export const toClaimed = (row: ClaimedRow): ClaimedRun => ({
  ...toRun(row),
  ...(row.secret === null ? {} : { secret: row.secret }),
  ...(row.signal === null ? {} : { signal: JSON.parse(row.signal) as JsonObject }),
})

export interface NewRunValues extends WhenValues, IdentityColumns {
  readonly id: string
  readonly name: string
  readonly definition: string
  readonly state: FirstState['state']
  readonly subject: string
  readonly subject_key: string
  readonly requestor: string
  readonly requestor_key: string
  readonly caller: string | null
  readonly reason: string | null
  readonly request_id: string | null
  readonly data: string
  readonly secret: string | null
  readonly deadline_at: number | null
  readonly deadline_in: number | null
  readonly access_ends: number | null
  readonly touched: number
  /** Attempts and claims so far. */
  readonly claims: number
  readonly lease: number | null
  readonly incident: string | null
  readonly final: number
}

/** Throws BAD_REQUEST for a login or an id that the database cannot hold. */
export function newRunValues(run: NewRun): NewRunValues {
  assertStorable('id of the run', run.id)
  assertStorable('login', run.subject)
  assertStorable('requestor', run.requestor)
  const first: FirstState = run.state ?? { state: 'ready', due: { inMillis: 0 } }
  const due = first.state === 'ready' ? first.due : { inMillis: 0 }
  const deadline = run.deadline === undefined ? { due_at: null, due_in: null } : whenValues(run.deadline)
  return {
    id: run.id,
    name: storable(run.name),
    definition: storable(run.definition),
    state: first.state,
    subject: run.subject,
    subject_key: lookupKey(run.subject),
    requestor: run.requestor,
    requestor_key: lookupKey(run.requestor),
    caller: optionalText(run.caller),
    requestor_identity: run.who?.requestor ?? null,
    caller_identity: run.who?.caller ?? null,
    subject_identity: run.who?.subject ?? null,
    reason: optionalText(run.reason),
    request_id: optionalText(run.requestId),
    data: JSON.stringify(run.data),
    secret: run.secret ?? null,
    ...whenValues(due),
    deadline_at: deadline.due_at,
    deadline_in: deadline.due_in,
    access_ends: run.accessEnds?.getTime() ?? null,
    touched: run.touched === true ? 1 : 0,
    claims: first.state === 'running' ? 1 : 0,
    lease: first.state === 'running' ? first.leaseMillis : null,
    incident: first.state === 'failed' ? JSON.stringify(first.incident) : null,
    final: first.state === 'completed' || first.state === 'failed' ? 1 : 0,
  }
}

export const stepColumns = [
  'run',
  'number',
  'attempt',
  'task',
  'task_type',
  'label',
  'started',
  'ended',
  'outcome',
  'error',
] as const

type StepNumbers = 'number' | 'attempt' | 'started' | 'ended'
type StepOptional = 'label' | 'error'

export type StepRow = {
  readonly [K in (typeof stepColumns)[number]]: K extends StepNumbers
    ? number
    : K extends StepOptional
      ? string | null
      : string
}

export const toStepRow = (run: string, step: StepRecord): StepRow => ({
  run,
  number: step.number,
  attempt: step.attempt,
  task: storable(step.task),
  task_type: storable(step.taskType),
  label: optionalText(step.label),
  started: step.started.getTime(),
  ended: step.ended.getTime(),
  outcome: storable(step.outcome),
  error: optionalText(step.error),
})

export const toStep = (row: Omit<StepRow, 'run'> & { readonly seq: number }): StoredStep => ({
  id: row.seq,
  number: row.number,
  attempt: row.attempt,
  task: row.task,
  taskType: row.task_type,
  ...(row.label === null ? {} : { label: row.label }),
  started: new Date(row.started),
  ended: new Date(row.ended),
  outcome: row.outcome,
  ...(row.error === null ? {} : { error: row.error }),
})
