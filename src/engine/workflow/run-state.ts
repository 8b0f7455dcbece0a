import type { Intent } from '#engine/workflow/intents.ts'
import type { RunIdentities } from '#identity/identity.ts'
import type { CreatedAccount, NewAccount } from '#sdk/new-account.ts'
import type { BoundSubject } from '#sdk/workflow.ts'
import type { RequestMap, TaskSignal, WorkflowUser } from '#sdk/workflow-task.ts'

/** Where a run stands in one list of tasks. Plain data, so that a run can be put down and taken up again. */
export interface Frame {
  readonly workflow: string
  readonly hash: string
  /** The list's place in the definition's tree. */
  readonly place: string
  /** The index of the task that runs next. */
  next: number
  /** A copy this frame and those above it work on; it is dropped with the frame. */
  readonly user?: WorkflowUser
}

/** All there is to know of a run between two steps. */
export interface RunState {
  readonly id: string
  readonly workflow: string
  /** The login of the user whom it is about, by which runs are kept in order. */
  readonly subject: string
  readonly requestor: string
  readonly caller?: string
  readonly who: RunIdentities
  readonly reason?: string
  readonly requestId?: string
  /** The public id of the session that requested the run. */
  readonly session?: string
  readonly user: WorkflowUser
  readonly request: RequestMap
  /** The innermost list last; empty when the run has ended. */
  readonly frames: Frame[]
  /** Definitions that the run and what it calls were when it started: hash by name. */
  readonly pins: ReadonlyMap<string, string>
  /** Steps begun so far. The number of a step is the same in every attempt of it. */
  steps: number
  /** How many runs started one another before this one. */
  readonly depth?: number
  /** What the next step waited for. */
  signal?: TaskSignal
  /** What earlier attempts of the next step were about to change, and nobody knows whether they did. */
  intents?: readonly Intent[]
  /** Present where the run may only create accounts; what it created so far grows. */
  readonly newAccount?: Omit<NewAccount, 'created'> & { readonly created: CreatedAccount[] }
  /** Present where no task may make the user another one. */
  readonly bound?: BoundSubject
  /** The approval that allowed what comes from now on. */
  approval?: string
}

/** The user that the innermost frame works on. */
export function currentUser(state: RunState): WorkflowUser {
  for (let i = state.frames.length - 1; i >= 0; i--) {
    const copy = state.frames[i]?.user
    if (copy !== undefined) return copy
  }
  return state.user
}
