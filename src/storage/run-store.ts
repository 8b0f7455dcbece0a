import type { AuditEntry } from '#domain/audit.ts'
import type { GrantRevocation, NewGrant } from '#domain/grant.ts'
import type { NewMail } from '#domain/mail.ts'
import type { NewTimer, TimerClaim, When } from '#domain/timer.ts'
import type { RunIdentities, UserRef } from '#identity/identity.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import type { NewApproval } from '#storage/approval-store.ts'
import type { IdempotentAnswer, IdempotentCall, Reservation } from '#storage/idempotency-store.ts'
import type { SessionEnding } from '#storage/session-store.ts'

/**
 * `ready` may be claimed once it is due; `running` is claimed; `waiting` goes on when an approval is decided or a timer
 * says so; `incident` needs an administrator. The others are ends.
 */
export type RunState = 'ready' | 'running' | 'waiting' | 'incident' | 'completed' | 'failed' | 'cancelled'

export interface WorkflowDefinition {
  readonly hash: string
  readonly name: string
  readonly body: JsonValue
}

/** What went wrong, for an administrator. Holds no secrets. */
export interface Incident {
  readonly task: string
  readonly code: string
  readonly message: string
}

export interface NewRun {
  /** Unique; made by whoever starts it. */
  readonly id: string
  readonly name: string
  /** The hash of the definition it is pinned to. */
  readonly definition: string
  /** The login of the user it is about; runs of one subject are executed one after the other. */
  readonly subject: string
  readonly requestor: string
  /** The authenticated caller, where that is another than the requestor. */
  readonly caller?: string
  readonly who?: RunIdentities
  readonly reason?: string
  readonly requestId?: string
  /** All that is needed to take the run up again, secrets excepted. */
  readonly data: JsonObject
  /** Encrypted. */
  readonly secret?: string
  readonly deadline?: When
  /** The end of access that it was asked for with. */
  readonly accessEnds?: Date
  /** Due at once when absent. */
  readonly state?: FirstState
  /** A target was changed already. */
  readonly touched?: boolean
}

/** What a run is when it is entered. */
export type FirstState =
  | { readonly state: 'ready'; readonly due: When }
  /** It met its first wait while it was not stored. */
  | { readonly state: 'waiting' }
  /**
   * It is being executed within its call, under the claim with fence 1. It holds up no other run of its subject; when the
   * lease runs out, it is claimed like every other.
   */
  | { readonly state: 'running'; readonly leaseMillis: number }
  /** It has ended within its call. */
  | { readonly state: 'completed' }
  | { readonly state: 'failed'; readonly incident: Incident }

/** One execution of one task. */
export interface StepRecord {
  readonly number: number
  readonly attempt: number
  /** Its place: `workflow:0/onSuccess/1`. */
  readonly task: string
  readonly taskType: string
  readonly label?: string
  readonly started: Date
  readonly ended: Date
  readonly outcome: string
  readonly error?: string
}

/** Everything that may be committed along with a run's state, or without any run. */
export interface RunEffects {
  /** Of the run that is committed or started. */
  readonly steps?: readonly StepRecord[]
  readonly audit?: readonly AuditEntry[]
  readonly timers?: readonly NewTimer[]
  readonly mails?: readonly NewMail[]
  readonly grants?: readonly NewGrant[]
  /** Sessions that end with the step. */
  readonly endings?: readonly SessionEnding[]
  /** Other runs that start. */
  readonly starts?: readonly NewRun[]
  /** Timers that this is the outcome of. VERSION_MISMATCH when another has one of them by now. */
  readonly doneTimers?: readonly TimerClaim[]
  /** CONFLICT when one of them is not active any more, or not due. */
  readonly revokes?: readonly GrantRevocation[]
  /** What the caller of a run that is not stored was answered. */
  readonly answer?: IdempotentAnswer
  /** A run that ended within its call and need not be kept. VERSION_MISMATCH when the claim is void. */
  readonly forgets?: RunClaim
}

/** The right to execute a run. Void once the lease has run out and another has taken the run. */
export interface RunClaim {
  readonly id: string
  readonly fence: number
}

/** What becomes of a run after a step. */
export type NextState =
  /** The claim goes on with the following step. */
  | { readonly state: 'running'; readonly leaseMillis: number }
  /** To be claimed again: for the following step with `attempt` 0, for the same one with the number of attempts so far. */
  | { readonly state: 'ready'; readonly due: When; readonly attempt: number }
  | { readonly state: 'waiting'; readonly approval?: NewApproval }
  | { readonly state: 'incident' | 'failed'; readonly incident: Incident }
  | { readonly state: 'completed' | 'cancelled' }

/** The end of a step: everything that follows from it, committed together or not at all. */
export interface StepCommit {
  readonly run: RunClaim
  readonly next: NextState
  readonly data: JsonObject
  /** What remains of the secrets; absent, there are none any more. Ended runs keep none. */
  readonly secret?: string
  readonly touched: boolean
  readonly effects: RunEffects
}

export interface RunSummary {
  readonly id: string
  readonly name: string
  readonly definition: string
  readonly state: RunState
  readonly subject: string
  readonly requestor: string
  readonly caller?: string
  readonly who: RunIdentities
  readonly reason?: string
  readonly requestId?: string
  /** Attempts begun of the present step. */
  readonly attempt: number
  /** Changes with every claim and every intervention. */
  readonly fence: number
  readonly worker?: string
  readonly leaseUntil?: Date
  readonly due: Date
  readonly deadline?: Date
  readonly accessEnds?: Date
  readonly incident?: Incident
  /** Who asked for its end, and why, before it has ended. */
  readonly cancel?: Cancellation
  readonly touched: boolean
  readonly created: Date
  readonly updated: Date
  readonly ended?: Date
}

export interface Run extends RunSummary {
  readonly data: JsonObject
}

export interface ClaimedRun extends Run {
  readonly secret?: string
  /** What it waited for, until the commit of the step that it leads to. */
  readonly signal?: JsonObject
}

export interface StoredStep extends StepRecord {
  /** Grows from step to step. */
  readonly id: number
}

export interface RunQuery {
  /** All that are given must hold; logins are compared without regard to letter case. */
  readonly states?: readonly RunState[]
  readonly name?: string
  readonly subject?: string
  readonly requestor?: string
  /** Only runs that this user requested, or that are about this user. */
  readonly requestedBy?: UserRef
  readonly about?: UserRef
  readonly after?: string
  /** At most 500 come back, whatever is asked. */
  readonly limit: number
}

export interface RunPage {
  /** Latest first. */
  readonly runs: readonly RunSummary[]
  /** Where the following page starts; absent on the last one. */
  readonly next?: string
}

export interface Cancellation {
  readonly by: string
  readonly reason?: string
}

export interface Intervention {
  readonly id: string
  /** That of the run as it was shown; VERSION_MISMATCH when something happened to it since. */
  readonly fence: number
  readonly effects: RunEffects
}

export interface CancelRequest extends Intervention {
  readonly cancellation: Cancellation
  /** Only while no target was changed, and no step is under way that may; CONFLICT otherwise. */
  readonly onlyUntouched: boolean
  /** `failed` where nobody asked for it, such as after the deadline. */
  readonly outcome: 'cancelled' | 'failed'
}

export interface RunFigures {
  readonly ready: number
  readonly running: number
  readonly waiting: number
  readonly incident: number
  /** How long the run that is due longest has been due. */
  readonly oldestReadyMillis?: number
  readonly oldestIncidentMillis?: number
}

/** `other-body` and `repeated` are of calls with a key only; nothing was started then. */
export type StartOutcome = { readonly kind: 'started' } | Exclude<Reservation, { kind: 'reserved' }>

/**
 * Runs of workflows that outlive the call, and the one place where a run's state and all that follows from a step are
 * committed together. Times are those of the database.
 */
export interface RunStore {
  /** Definitions that are known stay as they are, and count as used. */
  saveDefinitions(definitions: readonly WorkflowDefinition[]): Promise<void>
  definition(hash: string): Promise<WorkflowDefinition | undefined>

  /** Durable when it settles. Throws CONFLICT when the id exists. */
  start(
    run: NewRun,
    more?: { readonly effects?: RunEffects; readonly approval?: NewApproval; readonly idempotency?: IdempotentCall },
  ): Promise<StartOutcome>
  /** Commits what a run that is not stored, a timer or a job did. Steps in it are left out. */
  record(effects: RunEffects): Promise<void>

  /**
   * Takes runs that are ready and due, and those whose worker let the lease run out. Of one subject only one is claimed
   * at a time, and a ready one only when no earlier one is ready, due or not; runs that wait and incidents do not hold up
   * others.
   */
  claim(worker: string, limit: number, leaseMillis: number): Promise<readonly ClaimedRun[]>
  /** False when the claim is void, or when the run's end was asked for. */
  renew(claim: RunClaim, leaseMillis: number): Promise<boolean>
  /** Gives back a run that nothing was done for. False when the claim is void. */
  release(claim: RunClaim): Promise<boolean>
  /** Frees at once what a process that died had claimed, where the database has one process only; how many. */
  recover(): Promise<number>
  /**
   * Throws VERSION_MISMATCH, and nothing of it happens, when the claim is void. The state that the run has now:
   * `cancelled` or `failed` when its end was asked for meanwhile, and then no approval was opened.
   */
  commit(step: StepCommit): Promise<RunState>

  /** From `waiting` to `ready`, with what it waited for. False, and nothing happens, when it does not wait. */
  signal(run: string, signal: JsonObject, effects: RunEffects): Promise<boolean>
  /**
   * From `incident` to `ready`: as it is, to try again, or with other data, to go on behind the failed step. Throws
   * NOT_FOUND, CONFLICT when it is no incident, VERSION_MISMATCH.
   */
  resume(intervention: Intervention, data?: JsonObject): Promise<void>
  /**
   * Ends a run, with its approvals and timers, before its next step. One that is running ends with its commit: it is
   * `running` until then. Throws NOT_FOUND, CONFLICT when it has ended, VERSION_MISMATCH.
   */
  cancel(request: CancelRequest): Promise<RunState>

  get(id: string): Promise<Run | undefined>
  /** With all that whoever claims it gets, sealed secrets included; nobody has claimed it by that. */
  getWhole(id: string): Promise<ClaimedRun | undefined>
  /** Throws BAD_REQUEST for an `after` that no page gave. */
  list(query: RunQuery): Promise<RunPage>
  /** In their order, at most 500 behind the one with that id. */
  steps(run: string, after?: number): Promise<readonly StoredStep[]>
  /** A run of the subject is ready, now or later. */
  hasReady(subject: string): Promise<boolean>
  figures(): Promise<RunFigures>
  /** Forgets runs that ended before then, with their steps and approvals; how many. */
  prune(before: Date): Promise<number>
  /** Forgets definitions that were not used since then and that no run which has not ended is pinned to; how many. */
  pruneDefinitions(before: Date): Promise<number>
}
