import { Badge, Box, Group, Text } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { Notification } from '#features/portal/contract/main-notifications.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { isolated } from '../../app/isolated.ts'
import type { MessageKey } from '../../app/messages.ts'
import { Icon, type IconName } from '../../components/icon.tsx'
import { stateLooks } from '../../components/request-states.ts'
import type { Tone } from '../../components/status.tsx'

type RequestOutcome = Extract<Notification, { kind: 'request' }>['state']

const outcomeTexts: Readonly<Record<RequestOutcome, MessageKey>> = {
  completed: 'notification.completed',
  denied: 'notification.denied',
  expired: 'notification.expired',
  failed: 'notification.failed',
  cancelled: 'notification.cancelled',
  incident: 'notification.onHold',
}

interface NotificationRowProps {
  readonly notification: Notification
  readonly onOpen: () => void
}

/** One notification: opening it marks it as read. */
export function NotificationRow({ notification, onOpen }: NotificationRowProps) {
  const { t, relative, dateTime } = useTranslation()
  const { at, read } = notification
  const { icon, tone } = lookOf(notification)
  return (
    <div className="card">
      <Target notification={notification} onOpen={onOpen}>
        <Group gap="sm" w="100%" wrap="nowrap">
          <span className={`status-icon status-${tone}`}>
            <Icon name={icon} size={20} />
          </span>
          <Box flex={1} miw={0}>
            <Text fw={read ? 400 : 600}>
              <Said notification={notification} />
            </Text>
            <Text size="sm" c="dimmed">
              {notification.kind === 'approval' && `${t('notification.about', { name: notification.displayName })} · `}
              <time dateTime={at} title={dateTime(at)}>
                {relative(at)}
              </time>
            </Text>
          </Box>
          {!read && (
            <Badge size="sm" variant="light">
              {t('notification.new')}
            </Badge>
          )}
          <Icon name="chevron" size={18} />
        </Group>
      </Target>
    </div>
  )
}

function Said({ notification }: Pick<NotificationRowProps, 'notification'>) {
  const { t, relative } = useTranslation()
  if (notification.kind === 'approval') return t('notification.approval', { label: isolated(notification.label) })
  if (notification.kind === 'request') {
    return t(outcomeTexts[notification.state], { label: isolated(notification.label) })
  }
  if (notification.kind === 'question' || notification.kind === 'answer') {
    const key = notification.kind === 'question' ? 'notification.question' : 'notification.answer'
    return t(key, { name: isolated(notification.displayName), label: isolated(notification.label) })
  }
  const { name, target, expires } = notification
  return t('attention.ends', { name: isolated(name === '' ? target : name), when: relative(expires) })
}

const icons = { approval: 'check', question: 'mail', answer: 'mail', access: 'clock' } as const

function lookOf(notification: Notification): { readonly icon: IconName; readonly tone: Tone } {
  if (notification.kind === 'request') return stateLooks[notification.state]
  return { icon: icons[notification.kind], tone: 'waiting' }
}

interface TargetProps extends NotificationRowProps {
  readonly children: ReactNode
}

/** The page that the notification is about. */
function Target({ notification, onOpen, children }: TargetProps) {
  const common = { className: 'card-link', onClick: onOpen, children }
  if (notification.kind === 'approval' || notification.kind === 'answer') {
    return <Link to="/approvals/$id" params={{ id: notification.approval }} {...common} />
  }
  if (notification.kind === 'request' || notification.kind === 'question') {
    return <Link to="/requests/$id" params={{ id: notification.request }} {...common} />
  }
  return <Link to="/access" {...common} />
}
