import type { ScimCall } from '#contract/main-admin.ts'
import type { RequestState } from '#contract/main-requests.ts'
import type { MessageKey } from '../../app/messages.ts'

export type RunOutcome = 'done' | 'open' | 'bad'
export type CallOutcome = 'ok' | 'refused' | 'broken'

export const runOutcomes = ['done', 'open', 'bad'] as const
export const callOutcomes = ['ok', 'refused', 'broken'] as const

const outcomes: Readonly<Record<RequestState, RunOutcome>> = {
  completed: 'done',
  ready: 'open',
  running: 'open',
  waiting: 'open',
  cancelled: 'bad',
  failed: 'bad',
  incident: 'bad',
}

export const runOutcome = (state: RequestState): RunOutcome => outcomes[state]

export const callOutcome = ({ status }: Pick<ScimCall, 'status'>): CallOutcome =>
  status < 400 ? 'ok' : status < 500 ? 'refused' : 'broken'

/** Names and colours of the parts of a picture. */
export const runSeries: readonly { readonly name: RunOutcome; readonly label: MessageKey; readonly color: string }[] = [
  { name: 'done', label: 'dashboard.done', color: 'teal.6' },
  { name: 'open', label: 'dashboard.open', color: 'blue.5' },
  { name: 'bad', label: 'dashboard.bad', color: 'red.6' },
]

export const callSeries: readonly { readonly name: CallOutcome; readonly label: MessageKey; readonly color: string }[] =
  [
    { name: 'ok', label: 'dashboard.ok', color: 'teal.6' },
    { name: 'refused', label: 'dashboard.refused', color: 'yellow.6' },
    { name: 'broken', label: 'dashboard.broken', color: 'red.6' },
  ]
