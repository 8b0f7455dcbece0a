import { Group, Text } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { RequestSummary } from '#features/portal/contract/main-requests.ts'
import { isGoing } from '../../api/requests.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { isolated } from '../../app/isolated.ts'
import { accessText } from '../../components/access-now.ts'
import { Icon } from '../../components/icon.tsx'
import { useNames } from '../../components/person-names.tsx'
import { stateLooks } from '../../components/request-states.ts'
import { requesterText } from '../../components/requester.tsx'
import { Status } from '../../components/status.tsx'

export function RequestRow({ request }: { readonly request: RequestSummary }) {
  const { t, relative, dateTime } = useTranslation()
  const nameOf = useNames()
  const { id, label, state, subject, created, deadline, accessEnds } = request
  const look = stateLooks[state]
  const access = accessText(request, t, dateTime) ?? (accessEnds && t('requests.until', { when: dateTime(accessEnds) }))
  return (
    <div className="card">
      <Link to="/requests/$id" params={{ id }} className="card-link">
        <Group justify="space-between" gap="xs" w="100%" wrap="nowrap">
          <div>
            <Text fw={600}>{isolated(label)}</Text>
            <Text size="sm" c="dimmed">
              {t('requests.line', { subject: nameOf(subject), requestor: requesterText(request, t, nameOf) })} ·{' '}
              <time title={dateTime(created)}>{relative(created)}</time>
              {access !== undefined && ` · ${access}`}
              {deadline !== undefined && isGoing(state) && ` · ${t('requests.deadline', { when: relative(deadline) })}`}
            </Text>
          </div>
          <Group gap="xs" wrap="nowrap">
            <Status tone={look.tone} icon={look.icon} text={t(look.text)} />
            <Icon name="chevron" size={18} />
          </Group>
        </Group>
      </Link>
    </div>
  )
}
