import { branchPlace, type Definition, type Step } from '#engine/workflow/definition.ts'
import type { Frame, RunState } from '#engine/workflow/run-state.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { TaskContext, TaskOutcome } from '#sdk/workflow-task.ts'

export interface WalkLimits {
  /** Tasks that one run may execute. */
  readonly steps: number
  /** Workflows that may call one another in one run. */
  readonly calls: number
}

export const defaultLimits: WalkLimits = { steps: 10_000, calls: 16 }

/** The step that is about to run. */
export interface Position {
  readonly step: Step
  readonly frame: Frame
  readonly index: number
}

export type ContextFor = (state: RunState, position: Position) => TaskContext

/** Throws when the definition is not the one the frame was made for. */
export type DefinitionOf = (workflow: string, hash?: string) => Definition

/**
 * Runs a workflow from where its state stands to its end. Tasks say what comes next; this loop alone moves the frames,
 * so the state is complete between any two steps. What a task throws goes through unchanged.
 */
export async function walk(
  state: RunState,
  definitions: DefinitionOf,
  contextFor: ContextFor,
  limits: WalkLimits = defaultLimits,
): Promise<void> {
  for (let frame = state.frames.at(-1); frame !== undefined; frame = state.frames.at(-1)) {
    const index = frame.next
    const step = definitions(frame.workflow, frame.hash).lists.get(frame.place)?.[index]
    if (step === undefined) {
      state.frames.pop()
      continue
    }
    if (state.steps >= limits.steps) throw exceeded(state, `more than ${limits.steps} steps`)
    state.steps++
    const outcome = step.task.run(contextFor(state, { step, frame, index }))
    advance(state, frame, 'kind' in outcome ? outcome : await outcome, definitions, limits)
  }
}

/** The frame of a workflow's own list. */
export const rootFrame = ({ name, hash }: Definition): Frame => ({ workflow: name, hash, place: '', next: 0 })

function advance(
  state: RunState,
  frame: Frame,
  outcome: TaskOutcome,
  definitions: DefinitionOf,
  limits: WalkLimits,
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
      state.frames.push({
        workflow,
        hash,
        place,
        next: 0,
        ...(outcome.user === undefined ? {} : { user: outcome.user }),
      })
      return
    }
    case 'call':
      if (state.frames.filter(({ place }) => place === '').length >= limits.calls) {
        throw exceeded(state, `more than ${limits.calls} workflows call one another`)
      }
      state.frames.push(rootFrame(definitions(outcome.workflow)))
  }
}

const exceeded = (state: RunState, what: string): GatewayError =>
  new GatewayError('WORKFLOW_FAILED', `workflow "${state.workflow}" was ended: ${what}`)

/** For the log: `workflow:0/onSuccess/1`. */
export function positionText({ frame, index }: Pick<Position, 'frame' | 'index'>): string {
  return `${frame.workflow}:${frame.place === '' ? '' : `${frame.place}/`}${index}`
}
