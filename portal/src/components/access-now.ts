import type { RequestSummary } from '#features/portal/contract/main-requests.ts'
import type { Translation } from '../app/i18n.tsx'
import type { MessageKey } from '../app/messages.ts'

type State = NonNullable<RequestSummary['access']>['state']

const texts: Readonly<Record<State | 'extended' | 'givenBack', MessageKey>> = {
  active: 'accessNow.active',
  extended: 'accessNow.extended',
  removing: 'accessNow.removing',
  notRemoved: 'accessNow.notRemoved',
  ended: 'accessNow.ended',
  givenBack: 'accessNow.givenBack',
}

/** What the access is now that the request granted or extended; undefined where none with an expiry date is known. */
export function accessText(
  { access, accessEnds }: Pick<RequestSummary, 'access' | 'accessEnds'>,
  t: Translation['t'],
  timeText: (at: string) => string,
): string | undefined {
  if (access === undefined) return undefined
  const { state, expires, ended, givenBack } = access
  const isLonger = accessEnds !== undefined && Date.parse(expires) > Date.parse(accessEnds)
  if (state === 'active') return t(texts[isLonger ? 'extended' : 'active'], { when: timeText(expires) })
  if (state === 'ended' && givenBack === true) return t(texts.givenBack, { when: timeText(ended ?? expires) })
  return t(texts[state], { when: timeText(ended ?? expires) })
}
