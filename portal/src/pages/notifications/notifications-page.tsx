import { Button, Group, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { notificationsQuery, useMarkRead } from '../../api/notifications.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { Answer } from '../../components/answer.tsx'
import { Icon } from '../../components/icon.tsx'
import { useLive } from '../../components/live.ts'
import { Page } from '../../components/page.tsx'
import { Empty, Failure } from '../../components/states.tsx'
import { NotificationRow } from './notification-row.tsx'

/** Open approvals of the user, outcomes of requests, questions and answers, and access that expires soon. */
export function NotificationsPage() {
  const { t } = useTranslation()
  const query = useQuery({ ...notificationsQuery, refetchInterval: useLive(60_000) })
  const markRead = useMarkRead()
  const unread = query.data?.notifications.filter(({ read }) => !read).map(({ id }) => id) ?? []
  return (
    <Page
      title={t('page.notifications')}
      actions={
        <Group gap="sm">
          {unread.length > 0 && (
            <Button
              variant="default"
              leftSection={<Icon name="check" size={18} />}
              loading={markRead.isPending}
              onClick={() => markRead.mutate(unread)}
            >
              {t('notifications.markAll')}
            </Button>
          )}
          <Button
            variant="default"
            leftSection={<Icon name="mail" size={18} />}
            renderRoot={(props) => <Link to="/notifications/settings" {...props} />}
          >
            {t('notifications.settings')}
          </Button>
        </Group>
      }
    >
      {markRead.error !== null && <Failure error={markRead.error} />}
      <Answer query={query}>
        {({ notifications }) =>
          notifications.length === 0 ? (
            <Empty icon="bell" title={t('notifications.none')} text={t('notifications.noneText')} />
          ) : (
            <>
              <Stack component="ul" gap="xs" className="bare-list">
                {notifications.map((notification) => (
                  <li key={notification.id}>
                    <NotificationRow
                      notification={notification}
                      onOpen={() => {
                        if (!notification.read) markRead.mutate([notification.id])
                      }}
                    />
                  </li>
                ))}
              </Stack>
              <Text size="sm" c="dimmed">
                {t('notifications.extent')}
              </Text>
            </>
          )
        }
      </Answer>
    </Page>
  )
}
