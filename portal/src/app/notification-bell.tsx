import { ActionIcon, Indicator } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { unreadQuery } from '../api/notifications.ts'
import { Icon } from '../components/icon.tsx'
import { useLive } from '../components/live.ts'
import { useTranslation } from './i18n.tsx'

/** Leads to the notifications, with the number of unread ones. */
export function NotificationBell() {
  const { t, tn, number } = useTranslation()
  const { data: unread = 0 } = useQuery({ ...unreadQuery, refetchInterval: useLive(60_000) })
  const label = unread === 0 ? t('page.notifications') : tn('notifications.unread', unread)
  return (
    <Indicator disabled={unread === 0} label={<span aria-hidden>{number(unread)}</span>} size={16} offset={6}>
      <ActionIcon
        variant="subtle"
        color="gray"
        size="lg"
        aria-label={label}
        renderRoot={(props) => <Link to="/notifications" {...props} />}
      >
        <Icon name="bell" />
      </ActionIcon>
    </Indicator>
  )
}
