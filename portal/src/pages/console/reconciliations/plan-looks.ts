import type { PlanState, RowState } from '#features/portal/contract/plan-words.ts'
import type { IconName } from '../../../components/icon.tsx'
import type { Tone } from '../../../components/status.tsx'

interface Look {
  readonly tone: Tone
  readonly icon: IconName
}

export const planLooks: Readonly<Record<PlanState, Look>> = {
  requested: { tone: 'plain', icon: 'clock' },
  comparing: { tone: 'waiting', icon: 'refresh' },
  planned: { tone: 'waiting', icon: 'person' },
  applying: { tone: 'waiting', icon: 'refresh' },
  paused: { tone: 'waiting', icon: 'clock' },
  applied: { tone: 'good', icon: 'check' },
  stopped: { tone: 'bad', icon: 'close' },
  failed: { tone: 'bad', icon: 'warning' },
  expired: { tone: 'plain', icon: 'clock' },
}

export const rowLooks: Readonly<Record<RowState, Look>> = {
  reported: { tone: 'plain', icon: 'dot' },
  open: { tone: 'plain', icon: 'clock' },
  started: { tone: 'waiting', icon: 'refresh' },
  waiting: { tone: 'waiting', icon: 'person' },
  done: { tone: 'good', icon: 'check' },
  skipped: { tone: 'plain', icon: 'skip' },
  failed: { tone: 'bad', icon: 'warning' },
}

/** States in which a gateway works on a plan. */
export const underWay: ReadonlySet<PlanState> = new Set(['requested', 'comparing', 'applying'])
