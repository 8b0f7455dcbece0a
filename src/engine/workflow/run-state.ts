import type { RequestMap, WorkflowUser } from '#sdk/workflow-task.ts'

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
  readonly requestor: string
  readonly user: WorkflowUser
  readonly request: RequestMap
  /** The innermost list last; empty when the run has ended. */
  readonly frames: Frame[]
  /** Steps begun so far. The number of a step is the same in every attempt of it. */
  steps: number
}

/** The user that the innermost frame works on. */
export function currentUser(state: RunState): WorkflowUser {
  for (let i = state.frames.length - 1; i >= 0; i--) {
    const copy = state.frames[i]?.user
    if (copy !== undefined) return copy
  }
  return state.user
}
