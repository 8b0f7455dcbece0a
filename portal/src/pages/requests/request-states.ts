import type { RunState } from '#contract/main-requests.ts'
import type { MessageKey } from '../../app/messages.ts'
import type { IconName } from '../../components/icon.tsx'
import type { Tone } from '../../components/status.tsx'

interface Look {
  readonly text: MessageKey
  readonly tone: Tone
  readonly icon: IconName
}

export const stateLooks: Readonly<Record<RunState, Look>> = {
  ready: { text: 'requestState.ready', tone: 'waiting', icon: 'clock' },
  running: { text: 'requestState.running', tone: 'waiting', icon: 'arrow' },
  waiting: { text: 'requestState.waiting', tone: 'waiting', icon: 'clock' },
  incident: { text: 'requestState.incident', tone: 'bad', icon: 'warning' },
  completed: { text: 'requestState.completed', tone: 'good', icon: 'check' },
  failed: { text: 'requestState.failed', tone: 'bad', icon: 'warning' },
  cancelled: { text: 'requestState.cancelled', tone: 'plain', icon: 'close' },
}

/** The filters of the list; the empty one is all. */
export const stateFilters: Readonly<
  Record<string, { readonly text: MessageKey; readonly states: readonly RunState[] }>
> = {
  '': { text: 'requests.all', states: [] },
  open: { text: 'requests.open', states: ['ready', 'running', 'waiting', 'incident'] },
  completed: { text: 'requestState.completed', states: ['completed'] },
  failed: { text: 'requests.troubled', states: ['failed', 'incident'] },
  cancelled: { text: 'requestState.cancelled', states: ['cancelled'] },
}
