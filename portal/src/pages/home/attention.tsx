import { Anchor, Group, Paper, Stack, Title } from '@mantine/core'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { RequestState } from '#features/portal/contract/main-requests.ts'
import { accessQuery } from '../../api/access.ts'
import { approvalsQuery } from '../../api/approvals.ts'
import { gatewayNow } from '../../api/gateway-clock.ts'
import { notificationsQuery } from '../../api/notifications.ts'
import { troubledQuery } from '../../api/requests.ts'
import { useConfig, usePerson } from '../../app/config.tsx'
import { useTranslation } from '../../app/i18n.tsx'
import type { MessageKey } from '../../app/messages.ts'
import { Icon, type IconName } from '../../components/icon.tsx'
import { stateLooks } from '../../components/request-states.ts'
import type { Tone } from '../../components/status.tsx'
import { endingSoon, recentTrouble } from './attention-items.ts'

const maxListed = 5

const endings: Readonly<Partial<Record<RequestState, MessageKey>>> = {
  cancelled: 'attention.cancelled',
  denied: 'attention.denied',
  expired: 'attention.expired',
  incident: 'attention.onHold',
}

/** What needs the user's attention: decisions, questions, access that expires, requests that did not lead to access. Empty if there is nothing. */
export function Attention() {
  const { t, tn, relative } = useTranslation()
  const { enableApprovals } = useConfig()
  const { login } = usePerson()
  const approvals = useInfiniteQuery({ ...approvalsQuery, enabled: enableApprovals })
  const access = useQuery(accessQuery)
  const trouble = useQuery(troubledQuery)
  const notifications = useQuery(notificationsQuery)
  const now = gatewayNow()
  const open = approvals.data?.pages.reduce((sum, page) => sum + page.approvals.length, 0) ?? 0
  const ending = endingSoon(access.data?.access ?? [], now).slice(0, maxListed)
  const failed = recentTrouble(trouble.data?.requests ?? [], login, now).slice(0, maxListed)
  const questions = (notifications.data?.notifications ?? [])
    .filter((one) => one.kind === 'question')
    .slice(0, maxListed)
  if (open === 0 && questions.length === 0 && ending.length === 0 && failed.length === 0) return null
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="attention">
      <Title order={2} size="h5" id="attention" mb="xs">
        {t('attention.title')}
      </Title>
      <Stack gap={6}>
        {open > 0 && (
          <Line icon="check" tone="waiting">
            <Anchor renderRoot={(props) => <Link to="/approvals" {...props} />}>
              {tn('attention.approvals', open)}
            </Anchor>
          </Line>
        )}
        {questions.map(({ id, request, displayName, label }) => (
          <Line key={id} icon="mail" tone="waiting">
            <Anchor renderRoot={(props) => <Link to="/requests/$id" params={{ id: request }} {...props} />}>
              {t('notification.question', { name: displayName, label })}
            </Anchor>
          </Line>
        ))}
        {ending.map(({ id, name, target, expires }) => (
          <Line key={id} icon="clock" tone="waiting">
            <Anchor renderRoot={(props) => <Link to="/access" {...props} />}>
              {t('attention.ends', { name: name === '' ? target : name, when: relative(expires) })}
            </Anchor>
          </Line>
        ))}
        {failed.map(({ id, label, state, updated }) => (
          <Line key={id} icon={stateLooks[state].icon} tone={stateLooks[state].tone}>
            <Anchor renderRoot={(props) => <Link to="/requests/$id" params={{ id }} {...props} />}>
              {t(endings[state] ?? 'attention.failed', { label, when: relative(updated) })}
            </Anchor>
          </Line>
        ))}
      </Stack>
    </Paper>
  )
}

function Line({
  icon,
  tone,
  children,
}: {
  readonly icon: IconName
  readonly tone: Tone
  readonly children: ReactNode
}) {
  return (
    <Group gap="xs" wrap="nowrap">
      <span className={`status-icon status-${tone}`}>
        <Icon name={icon} size={18} />
      </span>
      {children}
    </Group>
  )
}
