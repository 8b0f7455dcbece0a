import { Paper, Stack, Text } from '@mantine/core'
import type { ApprovalDetails } from '#features/portal/contract/main-requests.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { isolated } from '../../app/isolated.ts'
import type { MessageKey } from '../../app/messages.ts'
import type { IconName } from '../../components/icon.tsx'
import { useNames } from '../../components/person-names.tsx'
import { Status, type Tone } from '../../components/status.tsx'

/** How an approval ended. */
export const decisionLooks: Readonly<
  Record<ApprovalDetails['status'], { readonly text: MessageKey; readonly tone: Tone; readonly icon: IconName }>
> = {
  open: { text: 'requestState.waiting', tone: 'waiting', icon: 'clock' },
  approved: { text: 'approval.isApproved', tone: 'good', icon: 'check' },
  denied: { text: 'approval.isDenied', tone: 'bad', icon: 'close' },
  cancelled: { text: 'approval.isCancelled', tone: 'plain', icon: 'close' },
}

/** The outcome of an approval, with the approver and the reason. */
export function Decided({ details }: { readonly details: ApprovalDetails }) {
  const { t, dateTime } = useTranslation()
  const nameOf = useNames()
  const { status, decision } = details
  const { text, tone, icon } = decisionLooks[status]
  return (
    <Paper withBorder p="md" role="status">
      <Stack gap={4}>
        <Status tone={tone} icon={icon} text={t(text)} />
        {decision !== undefined && (
          <>
            <Text size="sm" c="dimmed">
              {decision.by === undefined
                ? dateTime(decision.at)
                : `${isolated(nameOf(decision.by))} · ${dateTime(decision.at)}`}
              {decision.onBehalfOf !== undefined &&
                ` · ${t('approval.inPlaceOf', { who: nameOf(decision.onBehalfOf) })}`}
            </Text>
            {decision.comment !== undefined && <Text className="preline">{isolated(decision.comment)}</Text>}
          </>
        )}
      </Stack>
    </Paper>
  )
}
