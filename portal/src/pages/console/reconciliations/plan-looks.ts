import type { PlanState, RowState } from '#features/reconciliation/contract/plan-words.ts'
import type { MessageKey } from '../../../app/messages.ts'
import type { IconName } from '../../../components/icon.tsx'
import type { Tone } from '../../../components/status.tsx'

interface Look {
  readonly text: MessageKey
  readonly tone: Tone
  readonly icon: IconName
}

export const planLooks: Readonly<Record<PlanState, Look>> = {
  requested: { text: 'planState.requested', tone: 'plain', icon: 'clock' },
  comparing: { text: 'planState.comparing', tone: 'waiting', icon: 'refresh' },
  planned: { text: 'planState.planned', tone: 'waiting', icon: 'person' },
  applying: { text: 'planState.applying', tone: 'waiting', icon: 'refresh' },
  paused: { text: 'planState.paused', tone: 'waiting', icon: 'clock' },
  applied: { text: 'planState.applied', tone: 'good', icon: 'check' },
  stopped: { text: 'planState.stopped', tone: 'bad', icon: 'close' },
  failed: { text: 'planState.failed', tone: 'bad', icon: 'warning' },
  expired: { text: 'planState.expired', tone: 'plain', icon: 'clock' },
}

export const rowLooks: Readonly<Record<RowState, Look>> = {
  reported: { text: 'rowState.reported', tone: 'plain', icon: 'dot' },
  open: { text: 'rowState.open', tone: 'plain', icon: 'clock' },
  started: { text: 'rowState.started', tone: 'waiting', icon: 'refresh' },
  waiting: { text: 'rowState.waiting', tone: 'waiting', icon: 'person' },
  done: { text: 'rowState.done', tone: 'good', icon: 'check' },
  skipped: { text: 'rowState.skipped', tone: 'plain', icon: 'skip' },
  failed: { text: 'rowState.failed', tone: 'bad', icon: 'warning' },
}

/** States in which a gateway works on a plan. */
export const underWay: ReadonlySet<PlanState> = new Set(['requested', 'comparing', 'applying'])
