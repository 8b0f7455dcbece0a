import type { AdminStep } from '#contract/main-admin.ts'
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
}

/** By the place of the task. The latest step of a task counts. */
export function marksOf(timeline: readonly AdminStep[], incident?: string): ReadonlyMap<string, TaskMark> {
  const marks = new Map<string, TaskMark>()
  for (const step of timeline) marks.set(step.task, { outcome: outcomeOf(step), attempts: step.attempt })
  if (incident !== undefined && marks.get(incident)?.outcome !== 'failed') {
    marks.set(incident, { outcome: 'failed', attempts: marks.get(incident)?.attempts ?? 0 })
  }
  return marks
}
