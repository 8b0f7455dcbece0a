import { Checkbox, Group, Text } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { ApprovalSummary } from '#features/portal/contract/main-requests.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { isolated } from '../../app/isolated.ts'
import { Icon } from '../../components/icon.tsx'
import { useNames } from '../../components/person-names.tsx'
import { requesterText } from '../../components/requester.tsx'

interface ApprovalRowProps {
  readonly approval: ApprovalSummary
  readonly isChosen: boolean
  readonly onChoose: (chosen: boolean) => void
}

export function ApprovalRow({ approval, isChosen, onChoose }: ApprovalRowProps) {
  const { t, relative, dateTime } = useTranslation()
  const nameOf = useNames()
  const { label, displayName, requestor, caller, user, reason, approvalStart, wfLabel, accessEnds } = approval
  return (
    <Group className="card" wrap="nowrap" gap="sm">
      <Checkbox
        aria-label={t('approvals.choose', { label })}
        checked={isChosen}
        onChange={(event) => onChoose(event.currentTarget.checked)}
      />
      <Link to="/approvals/$id" params={{ id: approval.approval }} className="card-link">
        <Group justify="space-between" gap="xs" w="100%" wrap="nowrap">
          <div>
            <Text fw={600}>{isolated(label)}</Text>
            <Text size="sm" c="dimmed">
              {isolated(wfLabel)} · {isolated(nameOf(user, displayName))}
              {(requestor !== user || caller !== undefined) &&
                ` · ${t('approvals.askedBy', { requestor: requesterText(approval, t, nameOf) })}`}{' '}
              · <time title={dateTime(approvalStart)}>{relative(approvalStart)}</time>
              {accessEnds !== undefined && ` · ${t('requests.until', { when: dateTime(accessEnds) })}`}
            </Text>
            {reason !== '' && (
              <Text size="sm" className="clamp">
                {isolated(reason)}
              </Text>
            )}
          </div>
          <Icon name="chevron" size={18} />
        </Group>
      </Link>
    </Group>
  )
}
