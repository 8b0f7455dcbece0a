import type { EndedAccess, OwnAccess } from '#features/portal/contract/main-access.ts'
import { isGoing } from '../../api/requests.ts'
import type { MessageKey } from '../../app/messages.ts'
import type { IconName } from '../../components/icon.tsx'
import type { Tone } from '../../components/status.tsx'

interface Look {
  readonly text: MessageKey
  readonly tone: Tone
  readonly icon: IconName
}

/** Whether the access is gone. A run that is no longer stored ended long ago. */
export function removalLook(removal: EndedAccess['removal']): Look {
  if (removal === undefined || removal === 'completed') return { text: 'access.isEnded', tone: 'plain', icon: 'check' }
  if (removal === 'incident') return { text: 'access.removalOnHold', tone: 'bad', icon: 'warning' }
  if (isGoing(removal)) return { text: 'access.isRemoving', tone: 'waiting', icon: 'clock' }
  return { text: 'access.notRemoved', tone: 'bad', icon: 'warning' }
}

/** Whether the list changes soon: a request or a removal is in progress. */
export const isChanging = ({ access, ended }: OwnAccess): boolean =>
  access.some(({ pending }) => pending !== undefined) ||
  ended.some(({ removal, pending }) => pending !== undefined || (removal !== undefined && isGoing(removal)))
