import type { CreatedAccount, NewAccount } from '#sdk/target/new-account.ts'
import type { RunHead } from '#sdk/workflow/run-head.ts'
import type { BoundSubject } from '#sdk/workflow/workflow.ts'
import type { RequestMap, TaskSignal, WorkflowUser } from '#sdk/workflow/workflow-task.ts'
import type { AppointedApprover } from '#workflows/record/approval.ts'
import type { PlannedChange } from './planned-changes.ts'

/** The position of a run in one list of tasks. Plain data, so that a run can be stored and continued. */
export interface Frame {
  readonly workflow: string
  readonly hash: string
  /** The path of the list in the definition. */
  readonly place: string
  /** The index of the task that runs next. */
  next: number
  /** A copy that this frame and those above it work on; dropped with the frame. */
  readonly user?: WorkflowUser | undefined
}

/** The complete state of a run between two steps. */
export interface RunProgress {
  readonly head: RunHead
  /** The public id of the session that requested the run. */
  readonly session?: string | undefined
  /** The `traceparent` of the span that started the run; absent if it was not traced. */
  readonly trace?: string | undefined
  readonly user: WorkflowUser
  readonly request: RequestMap
  /** The innermost list last; empty after the run has ended. */
  readonly frames: Frame[]
  /** The definitions of the run and of the workflows it calls, when it started: hash by name. */
  readonly pins: ReadonlyMap<string, string>
  /** Steps begun so far. The number of a step is the same in every attempt of it. */
  steps: number
  /** How many runs started one another before this one. */
  readonly depth?: number
  /** The result of the wait, for the next step. */
  signal?: TaskSignal
  /** Changes that earlier attempts of the next step planned and may have made. */
  plannedChanges?: readonly PlannedChange[]
  /** Present if the run may only create accounts; grows with what it created. */
  readonly newAccount?: (Omit<NewAccount, 'created'> & { readonly created: CreatedAccount[] }) | undefined
  /** Present if no task may replace the user. */
  readonly bound?: BoundSubject | undefined
  /** The state in which the run ends, if that is not `completed`. */
  end?: 'denied'
  /** The approval that allowed the following steps. */
  approval?: string
  /** Who decides the approval of the next step, if its rules found no one. */
  appointed?: AppointedApprover
}

/** The user that the innermost frame works on. */
export function currentUser(state: RunProgress): WorkflowUser {
  for (let i = state.frames.length - 1; i >= 0; i--) {
    const copy = state.frames[i]?.user
    if (copy !== undefined) return copy
  }
  return state.user
}
