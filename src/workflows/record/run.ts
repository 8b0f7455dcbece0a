import type { Identity, UserRef } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import { shownReason } from '#kernel/secret-values.ts'
import type { RunHead } from '#sdk/workflow/run-head.ts'

/**
 * How a run ended: `completed` if every task was done, `denied` by an approver, `expired` if its deadline passed,
 * `failed` by an error that no retry can fix, `cancelled` by a user or an administrator.
 */
export const runOutcomes = ['completed', 'denied', 'expired', 'failed', 'cancelled'] as const

/**
 * `ready` runs can be claimed once they are due, `running` ones are claimed, `waiting` ones continue after a
 * decision or at a time, and an `incident` needs an administrator. Runs in the other states have ended.
 */
export type RunState = (typeof runStates)[number]

export const runStates = ['ready', 'running', 'waiting', 'incident', ...runOutcomes] as const

export const isRunState = (word: string): word is RunState => (runStates as readonly string[]).includes(word)

const finalStates: ReadonlySet<RunState> = new Set(runOutcomes)

export const hasEnded = (state: RunState): boolean => finalStates.has(state)

/** The error, for an administrator. Has no secrets. */
export interface Incident {
  readonly task: string
  readonly code: string
  readonly message: string
  /** The target that the task called last; absent if it called none. */
  readonly target?: string
  /** Skipping the task would skip no approval, and decide no condition that leads to one. Absent if that is unknown. */
  readonly maySkip?: boolean
}

const maxMessage = 2_000

export const incidentOf = (error: unknown, task: string, target?: string): Incident => ({
  task,
  code: error instanceof GatewayError ? error.code : 'WORKFLOW_FAILED',
  message: shownReason(error).slice(0, maxMessage),
  ...(target === undefined ? {} : { target }),
})

export interface Cancellation {
  readonly by: string
  readonly reason?: string | undefined
}

/** A stored run of a workflow, without the attributes and secrets it works on. */
export interface Run {
  readonly head: RunHead
  readonly state: RunState
  /** What its caller changes, if the caller may repeat the change before the run is finished. */
  readonly resource?: string
  /** How often the current step was started. */
  readonly attempt: number
  /** Changes with every claim and every intervention. An intervention names the version that the administrator saw. */
  readonly fence: number
  readonly worker?: string
  readonly leaseUntil?: Date
  readonly due: Date
  readonly incident?: Incident
  /** Who cancelled it, and why. Set before the run ends. */
  readonly cancel?: Cancellation
  /** A target was changed. */
  readonly touched: boolean
  readonly created: Date
  readonly updated: Date
  readonly ended?: Date
}

/** With what it works on. */
export interface StoredRun extends Run {
  readonly data: JsonObject
  /** Encrypted. */
  readonly secret?: string | undefined
  /** The result that it waited for, until the step that uses it has committed. */
  readonly signal?: JsonObject
}

/** That a run changed, and who may see it. */
export interface RunChange {
  readonly id: string
  readonly state: RunState
  readonly updated: Date
  /** Requester, caller and subject. */
  readonly users: readonly Identity[]
  /** Of all its approvals. */
  readonly approvers: readonly Identity[]
}

export interface RunChangePage {
  /** Earliest first. */
  readonly changes: readonly RunChange[]
  /** False if there were more runs or approvers than are read. */
  readonly isComplete: boolean
}

/** The right to execute a run. Void once the lease has expired and another worker has claimed the run. */
export interface RunClaim {
  readonly id: string
  readonly fence: number
}

export const claimOf = ({ head, fence }: Pick<Run, 'head' | 'fence'>): RunClaim => ({ id: head.id, fence })

/** One execution of one task. */
export interface StepRecord {
  readonly number: number
  readonly attempt: number
  /** Its path in the workflow: `workflow:0/onSuccess/1`. */
  readonly task: string
  readonly taskType: string
  readonly label?: string
  readonly started: Date
  readonly ended: Date
  readonly outcome: string
  readonly error?: string
}

export interface StoredStep extends StepRecord {
  /** Increases from step to step. */
  readonly id: number
}

/** All given conditions must hold. Logins are compared without regard to letter case. */
export interface RunQuery {
  readonly states?: readonly RunState[]
  readonly name?: string | undefined
  readonly subject?: string | undefined
  readonly requester?: string | undefined
  /** Only runs that this user requested. */
  readonly requestedBy?: UserRef
  /** Only runs about this user. */
  readonly about?: UserRef
  /** Only runs that were created at that time or later. */
  readonly from?: Date | undefined
  /** Only runs that were created before then. */
  readonly until?: Date | undefined
  /** Only runs that changed at that time or later, their end included. */
  readonly changedSince?: Date
  /** Only incidents at this target. */
  readonly target?: string | undefined
  /** Only changes that failed part way, and are tried again or need an administrator; with `false` only all others. */
  readonly unfinished?: boolean | undefined
  /** The `next` of the previous page. */
  readonly after?: string | undefined
  /** At most 500. */
  readonly limit: number
}

export interface RunPage {
  /** Latest first. */
  readonly runs: readonly Run[]
  /** Where the next page starts; absent on the last page. */
  readonly next?: string
}
