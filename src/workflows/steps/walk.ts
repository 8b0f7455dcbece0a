import { GatewayError } from '#kernel/errors.ts'
import type { TaskOutcome, WorkflowUser } from '#sdk/workflow/workflow-task.ts'
import { branchPlace, type Definition, type Step } from '#workflows/definitions/definitions.ts'
import { requireExpiry } from '#workflows/definitions/expiry-parameter.ts'
import { currentUser, type Frame, type RunProgress } from './run-progress.ts'

/** How many tasks one run may execute. */
const maxSteps = 10_000
/** How deep workflows may call one another in one run. */
const maxCalls = 16

/** The step that is about to run. */
export interface Position {
  readonly step: Step
  readonly frame: Frame
  readonly index: number
}

/** Throws for an unknown definition; without a hash, the current one. */
export type DefinitionOf = (workflow: string, hash?: string) => Definition

export type WaitOutcome = Extract<TaskOutcome, { kind: 'wait' }>

/** The next task, after removing finished lists; undefined at the end of the run. */
export function nextPosition(state: RunProgress, definitions: DefinitionOf): Position | undefined {
  for (let frame = state.frames.at(-1); frame !== undefined; frame = state.frames.at(-1)) {
    const index = frame.next
    const step = definitions(frame.workflow, frame.hash).lists.get(frame.place)?.[index]
    if (step !== undefined) return { step, frame, index }
    state.frames.pop()
  }
  return undefined
}

/**
 * Whether the next task can be skipped: no task after it may run without a decision because of that. So neither it, nor its
 * subtasks, nor a workflow that they call has an approval, and no condition after it leads to one: what the task
 * changes could be what the condition asks for. Undefined if no task is left.
 */
export function maySkip(
  { frames, pins }: Pick<RunProgress, 'frames' | 'pins'>,
  definitions: DefinitionOf,
): boolean | undefined {
  const called = (name: string): Definition => definitions(name, pins.get(name))
  const hasApproval = (steps: readonly Step[], seen = new Set<string>()): boolean =>
    steps.some(
      ({ taskType, calls = [] }) =>
        taskType === 'approval' ||
        calls.some((name) => {
          if (seen.has(name)) return false
          seen.add(name)
          return hasApproval([...called(name).lists.values()].flat(), seen)
        }),
    )
  /** Whether a condition in the list, from that task on, leads to an approval. */
  const hasCondition = (
    { lists }: Pick<Definition, 'lists'>,
    place: string,
    from: number,
    seen = new Set<string>(),
  ): boolean =>
    (lists.get(place) ?? []).some(({ taskType, calls = [] }, index) => {
      if (index < from) return false
      if (taskType === 'approval') return hasCondition({ lists }, branchPlace(place, index, 'onSuccess'), 0, seen)
      if (hasApproval(subtasks(lists, place, index))) return true
      return calls.some((name) => {
        if (seen.has(name)) return false
        seen.add(name)
        return hasCondition(called(name), '', 0, seen)
      })
    })
  const frame = frames.at(-1)
  if (frame === undefined) return undefined
  const { lists } = definitions(frame.workflow, frame.hash)
  const step = lists.get(frame.place)?.[frame.next]
  if (step === undefined) return undefined
  if (hasApproval([step, ...subtasks(lists, frame.place, frame.next)])) return false
  return !frames.some((one) =>
    hasCondition(definitions(one.workflow, one.hash), one.place, one === frame ? one.next + 1 : one.next),
  )
}

/** The tasks in the branches of the task, and in theirs. */
function subtasks(lists: Definition['lists'], place: string, index: number): readonly Step[] {
  const within = `${place === '' ? '' : `${place}/`}${index}/`
  return [...lists].flatMap(([at, steps]) => (at.startsWith(within) ? steps : []))
}

/** Counts a step that begins. Throws WORKFLOW_FAILED if there were too many. */
export function beginStep(state: RunProgress): void {
  if (state.steps >= maxSteps) throw exceeded(state, `more than ${maxSteps} steps`)
  state.steps++
}

/**
 * Moves the state past a finished step. A waiting step is not finished: the same one runs again, with the same
 * number, after the wait.
 */
export function endStep(
  state: RunProgress,
  { frame }: Position,
  outcome: TaskOutcome,
  definitions: DefinitionOf,
): WaitOutcome | undefined {
  delete state.signal
  if (outcome.kind !== 'wait') {
    advance(state, frame, outcome, definitions)
    return undefined
  }
  state.steps--
  return outcome
}

/** Removes the password once it is set, unless a later task may set it at another target. */
export function dropUsedPassword({ user, frames }: RunProgress, definitions: DefinitionOf): void {
  const used = [user, ...frames.flatMap((frame) => frame.user ?? [])].filter((one) => one.passwordTargets !== undefined)
  if (used.length === 0) return
  const isNeeded = frames.some(({ workflow, hash, place, next }) =>
    definitions(workflow, hash)
      .lists.get(place)
      ?.slice(next)
      .some(({ maySetPassword }) => maySetPassword),
  )
  if (!isNeeded) for (const one of used) delete one.password
}

/** The frame of a workflow's own list. */
export const rootFrame = ({ name, hash }: Definition): Frame => ({ workflow: name, hash, place: '', next: 0 })

function advance(
  state: RunProgress,
  frame: Frame,
  outcome: Exclude<TaskOutcome, WaitOutcome>,
  definitions: DefinitionOf,
): void {
  const index = frame.next++
  switch (outcome.kind) {
    case 'next':
      return
    case 'stop':
      state.frames.length = 0
      return
    case 'branch': {
      const { workflow, hash } = frame
      const place = branchPlace(frame.place, index, outcome.branch)
      const user = outcome.user ?? (outcome.end === undefined ? undefined : copyInUse(state))
      if (outcome.end !== undefined) {
        state.frames.length = 0
        state.end = outcome.end
      }
      state.frames.push({ workflow, hash, place, next: 0, user })
      return
    }
    case 'call': {
      if (state.frames.filter(({ place }) => place === '').length >= maxCalls) {
        throw exceeded(state, `more than ${maxCalls} workflows call one another`)
      }
      const called = definitions(outcome.workflow, state.pins.get(outcome.workflow))
      requireExpiry(called, state.request)
      const { user, again = false } = outcome
      if (again) frame.next = index
      state.frames.push({ ...rootFrame(called), ...(user === undefined ? {} : { user }) })
    }
  }
}

/** The copy that the innermost frames work on, if there is one. */
function copyInUse(state: RunProgress): WorkflowUser | undefined {
  const user = currentUser(state)
  return user === state.user ? undefined : user
}

const exceeded = (state: RunProgress, what: string): GatewayError =>
  new GatewayError('WORKFLOW_FAILED', `workflow "${state.head.workflow}" was ended: ${what}`)

/** For the log: `workflow:0/onSuccess/1`. */
export function positionText({ frame, index }: Pick<Position, 'frame' | 'index'>): string {
  return `${frame.workflow}:${frame.place === '' ? '' : `${frame.place}/`}${index}`
}

/** The position of the run, for people. */
export function taskOf(state: RunProgress): string {
  const frame = state.frames.at(-1)
  return frame === undefined ? 'end' : positionText({ frame, index: frame.next })
}
