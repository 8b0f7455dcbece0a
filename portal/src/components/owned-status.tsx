import { Group } from '@mantine/core'
import { useTranslation } from '../app/i18n.tsx'
import type { Owned } from './own-access.ts'
import { Status } from './status.tsx'

/** Whether the user has the access, or requested it. Empty if neither is known. */
export function OwnedStatus({ owned: { has, expires, pending } }: { readonly owned: Owned }) {
  const { t, dateTime } = useTranslation()
  if (!has && pending === undefined) return null
  return (
    <Group gap="sm">
      {has && (
        <Status
          tone="good"
          icon="check"
          text={expires === undefined ? t('request.have') : t('request.haveUntil', { when: dateTime(expires) })}
        />
      )}
      {pending !== undefined && <Status tone="waiting" icon="clock" text={t('request.pending')} />}
    </Group>
  )
}
