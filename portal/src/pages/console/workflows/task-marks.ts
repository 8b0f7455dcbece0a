import type { AdminStep } from '#features/portal/contract/main-admin.ts'
import type { MessageKey } from '../../../app/messages.ts'
import type { IconName } from '../../../components/icon.tsx'
import type { Tone } from '../../../components/status.tsx'

type Outcome = 'done' | 'failed' | 'waiting'

export const outcomeLooks: Readonly<
  Record<Outcome, { readonly tone: Tone; readonly icon: IconName; readonly text: MessageKey }>
> = {
  done: { tone: 'good', icon: 'check', text: 'requestState.completed' },
  failed: { tone: 'bad', icon: 'warning', text: 'requestState.failed' },
  waiting: { tone: 'waiting', icon: 'clock', text: 'requestState.waiting' },
}

export const outcomeOf = ({ outcome }: Pick<AdminStep, 'outcome'>): Outcome =>
  outcome === 'failed' ? 'failed' : outcome === 'wait' ? 'waiting' : 'done'

/** What became of a task in a run. */
export interface TaskMark {
  readonly outcome: Outcome
  /** How often it was tried. */
  readonly attempts: number
  /** The workflow that it called, with what became of its tasks; absent while none of them has run. */
  readonly called?: { readonly workflow: string; readonly marks: TaskMarks }
}

/** By the place of the task. */
export type TaskMarks = ReadonlyMap<string, TaskMark>

interface Level {
  readonly workflow: string
  readonly marks: Map<string, TaskMark>
  /** The place of the task that has run last. */
  latest: string
}

/**
 * The latest step of a task counts. A task that called a workflow is as far as the latest step of that workflow. No
 * workflow calls itself, so the steps of another workflow than those under way are those of the workflow called last.
 */
export function marksOf(timeline: readonly AdminStep[], incident?: string): TaskMarks {
  const levels: Level[] = []
  const mark = (task: string, outcome: Outcome, attempts?: number): void => {
    const level = levelOf(levels, workflowOf(task))
    const before = level.marks.get(task)
    level.marks.set(task, { outcome, attempts: attempts ?? before?.attempts ?? 0 })
    level.latest = task
    for (const [i, caller] of levels.slice(0, -1).entries()) {
      const { workflow = '', marks = new Map() } = levels[i + 1] ?? {}
      const attemptsOfCall = caller.marks.get(caller.latest)?.attempts ?? 0
      caller.marks.set(caller.latest, { outcome, attempts: attemptsOfCall, called: { workflow, marks } })
    }
  }
  for (const step of timeline) mark(step.task, outcomeOf(step), step.attempt)
  if (incident !== undefined) mark(incident, 'failed')
  return levels[0]?.marks ?? new Map()
}

/** The part of a place before its last colon. */
const workflowOf = (task: string): string => task.slice(0, Math.max(0, task.lastIndexOf(':')))

/** Leaves the called workflows that have ended, or enters one that has just begun. */
function levelOf(levels: Level[], workflow: string): Level {
  const depth = levels.findLastIndex((level) => level.workflow === workflow)
  const found = levels[depth]
  if (found !== undefined) {
    levels.length = depth + 1
    return found
  }
  const entered = { workflow, marks: new Map(), latest: '' }
  levels.push(entered)
  return entered
}
