import { Button, Paper, Stack, Text, Title } from '@mantine/core'
import { useState } from 'react'
import type { AdminApproval, AdminRunDetails } from '#features/portal/contract/main-admin.ts'
import { useConfig } from '../../../app/config.tsx'
import { useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import type { IconName } from '../../../components/icon.tsx'
import { useNames } from '../../../components/person-names.tsx'
import { Preline } from '../../../components/preline.tsx'
import { Status, type Tone } from '../../../components/status.tsx'
import { ReassignDialog } from '../approvals/reassign-dialog.tsx'

const looks: Readonly<Record<AdminApproval['status'], { readonly tone: Tone; readonly icon: IconName }>> = {
  open: { tone: 'waiting', icon: 'clock' },
  approved: { tone: 'good', icon: 'check' },
  denied: { tone: 'bad', icon: 'close' },
  cancelled: { tone: 'plain', icon: 'close' },
}

/** The approvals of a run, with who decided, or whom they wait for. Operators reassign open ones. */
export function RunApprovals({ run: { approvals, subject, involvesCaller } }: { readonly run: AdminRunDetails }) {
  const { t, tn, dateTime } = useTranslation()
  const nameOf = useNames()
  const { operator } = useConfig()
  const [asked, setAsked] = useState<AdminApproval>()
  const title = ({ label, status, decision }: AdminApproval): string => {
    if (status === 'open') return t('timeline.opened', { label })
    if (status === 'cancelled') return `${label}: ${t('requestState.cancelled')}`
    const by = decision?.by === undefined ? '–' : nameOf(decision.by)
    return t(status === 'approved' ? 'timeline.approved' : 'timeline.denied', { label, by })
  }
  return (
    <section aria-labelledby="approvals">
      <Title order={2} size="h4" id="approvals" mb="sm">
        {t('page.approvals')}
      </Title>
      <Stack gap="sm">
        {approvals.map((approval) => {
          const { id, status, approvers, opened, escalation, decision } = approval
          return (
            <Paper key={id} withBorder p="sm">
              <Status {...looks[status]} text={title(approval)} />
              <Text size="sm" c="dimmed">
                {dateTime(decision?.at ?? opened)}
                {escalation > 0 && ` · ${tn('timeline.escalated', escalation)}`}
              </Text>
              {status === 'open' && (
                <Text size="sm">
                  {approvers.length === 0
                    ? t('timeline.nobody')
                    : t('timeline.holders', { who: approvers.map((login) => nameOf(login)).join(', ') })}
                </Text>
              )}
              {status === 'open' && operator && !involvesCaller && (
                <Button
                  size="xs"
                  mt="xs"
                  variant="default"
                  aria-label={`${t('openApprovals.reassign')}: ${approval.label}, ${nameOf(subject)}`}
                  onClick={() => setAsked(approval)}
                >
                  {t('openApprovals.reassign')}
                </Button>
              )}
              {decision?.onBehalfOf !== undefined && (
                <Text size="sm">{t('console.onBehalfOf', { login: nameOf(decision.onBehalfOf) })}</Text>
              )}
              {decision?.comment !== undefined && <Preline text={isolated(decision.comment)} />}
            </Paper>
          )
        })}
      </Stack>
      {asked !== undefined && (
        <ReassignDialog approval={asked} subject={nameOf(subject)} onClose={() => setAsked(undefined)} />
      )}
    </section>
  )
}
