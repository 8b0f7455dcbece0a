import type { RequestState } from '#features/portal/contract/main-requests.ts'
import type { Translation } from '../app/i18n.tsx'
import type { MessageKey } from '../app/messages.ts'
import { stateLooks } from './request-states.ts'

/** The filter of the list of runs, as in its address. `state` has one or more states, separated by commas. */
export type RunFilter = {
  readonly [name in 'state' | 'name' | 'subject' | 'requestor' | 'target' | 'unfinished' | 'from' | 'until']?:
    | string
    | undefined
}

const isState = (word: string): word is RequestState => Object.hasOwn(stateLooks, word)

/** The states of an address; unknown ones are dropped. */
export const statesOf = (state = ''): readonly RequestState[] => state.split(',').filter(isState)

/** Sets of states that charts count together. */
const sets: Readonly<Record<string, MessageKey>> = {
  '': 'requests.all',
  'ready,running,waiting': 'dashboard.open',
  'failed,incident': 'dashboard.bad',
  'cancelled,expired': 'dashboard.ended',
}

/** The choices of states, with the present one even if it is another set. */
export function stateOptions(state: string, t: Translation['t']): readonly { value: string; label: string }[] {
  const present = statesOf(state).join(',')
  const single = Object.entries(stateLooks).map(([value, { text }]) => ({ value, label: t(text) }))
  const known = [...Object.entries(sets).map(([value, text]) => ({ value, label: t(text) })), ...single]
  if (known.some(({ value }) => value === present)) return known
  const names = statesOf(state).map((one) => t(stateLooks[one].text))
  return [...known, { value: present, label: names.join(', ') }]
}
