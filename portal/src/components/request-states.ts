import type { RequestState } from '#features/portal/contract/main-requests.ts'
import type { MessageKey } from '../app/messages.ts'
import type { IconName } from './icon.tsx'
import type { Tone } from './status.tsx'

interface Look {
  readonly text: MessageKey
  readonly tone: Tone
  readonly icon: IconName
}

export const stateLooks: Readonly<Record<RequestState, Look>> = {
  ready: { text: 'requestState.ready', tone: 'waiting', icon: 'clock' },
  running: { text: 'requestState.running', tone: 'waiting', icon: 'arrow' },
  waiting: { text: 'requestState.waiting', tone: 'waiting', icon: 'clock' },
  incident: { text: 'requestState.incident', tone: 'bad', icon: 'warning' },
  completed: { text: 'requestState.completed', tone: 'good', icon: 'check' },
  denied: { text: 'requestState.denied', tone: 'bad', icon: 'close' },
  expired: { text: 'requestState.expired', tone: 'plain', icon: 'clock' },
  failed: { text: 'requestState.failed', tone: 'bad', icon: 'warning' },
  cancelled: { text: 'requestState.cancelled', tone: 'plain', icon: 'close' },
}

/** The filters of the list; the empty one is all. */
export const stateFilters: Readonly<
  Record<string, { readonly text: MessageKey; readonly states: readonly RequestState[] }>
> = {
  '': { text: 'requests.all', states: [] },
  open: { text: 'requests.open', states: ['ready', 'running', 'waiting', 'incident'] },
  completed: { text: 'requestState.completed', states: ['completed'] },
  denied: { text: 'requestState.denied', states: ['denied'] },
  failed: { text: 'requests.troubled', states: ['failed', 'incident'] },
  expired: { text: 'requestState.expired', states: ['expired'] },
  cancelled: { text: 'requestState.cancelled', states: ['cancelled'] },
}
