import { Button } from '@mantine/core'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { ConsoleApproval } from '#features/portal/contract/console-approvals.ts'
import * as consoleRoutes from '#features/portal/contract/console-routes.ts'
import { consolePath } from '../../../api/console.ts'
import { useConfig } from '../../../app/config.tsx'
import { useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import { PersonName, useNames } from '../../../components/person-names.tsx'
import { Requester } from '../../../components/requester.tsx'
import { type ConsoleColumn, ConsoleList } from '../console-list.tsx'
import { ConsolePage } from '../console-page.tsx'
import { FilterForm, filled } from '../filter-form.tsx'
import { ReassignDialog } from './reassign-dialog.tsx'

const route = getRouteApi('/console/approvals')

/** For how many days an overdue approval has been open. */
const overdueDays = [1, 3, 7, 30] as const

/** The approval to reassign, and the name of the user whom it is about. */
interface Asked {
  readonly approval: ConsoleApproval
  readonly subject: string
}

/** The open approvals of all users. */
export function OpenApprovalsPage() {
  const { t, tn } = useTranslation()
  const { workflow, approver, overdue } = route.useSearch()
  const navigate = route.useNavigate()
  const [asked, setAsked] = useState<Asked>()
  const columns = useApprovalColumns(setAsked)
  const values = {
    workflow,
    approver,
    overdue: overdueDays.some((days) => `${days}d` === overdue) ? overdue : undefined,
  }
  return (
    <ConsolePage title={t('page.openApprovals')} intro={t('openApprovals.intro')}>
      <ConsoleList<ConsoleApproval>
        label={t('page.openApprovals')}
        path={consolePath(consoleRoutes.listOpenApprovals)}
        filter={filled(values)}
        columns={columns}
        empty={t('openApprovals.none')}
        everyMillis={30_000}
      >
        <FilterForm
          fields={[
            {
              name: 'overdue',
              label: t('openApprovals.age'),
              options: [
                { value: '', label: t('requests.all') },
                ...overdueDays.map((days) => ({ value: `${days}d`, label: tn('openApprovals.overdue', days) })),
              ],
            },
            { name: 'workflow', label: t('runs.workflow') },
            { name: 'approver', label: t('openApprovals.approver') },
          ]}
          values={values}
          onApply={(next) => void navigate({ search: filled(next), replace: true })}
        />
      </ConsoleList>
      {asked !== undefined && <ReassignDialog {...asked} onClose={() => setAsked(undefined)} />}
    </ConsolePage>
  )
}

function useApprovalColumns(onReassign: (asked: Asked) => void): readonly ConsoleColumn<ConsoleApproval>[] {
  const { t, tn, dateTime, relative } = useTranslation()
  const { operator } = useConfig()
  const columns: readonly ConsoleColumn<ConsoleApproval>[] = [
    {
      key: 'label',
      name: t('openApprovals.label'),
      width: 13,
      cell: ({ run, label }) => (
        <Link className="text-link" to="/console/runs/$id" params={{ id: run }}>
          {isolated(label)}
        </Link>
      ),
    },
    { key: 'workflow', name: t('runs.workflow'), width: 9, cell: ({ workflow }) => isolated(workflow) },
    { key: 'subject', name: t('request.for'), width: 8, cell: ({ subject }) => <PersonName login={subject} /> },
    {
      key: 'requestor',
      name: t('request.by'),
      width: 9,
      cell: (approval) => <Requester {...approval} />,
    },
    {
      key: 'opened',
      name: t('openApprovals.opened'),
      width: 9,
      cell: ({ opened, escalation }) => (
        <>
          <time dateTime={opened} title={dateTime(opened)}>
            {relative(opened)}
          </time>
          {escalation > 0 && ` · ${tn('timeline.escalated', escalation)}`}
        </>
      ),
    },
    {
      key: 'approvers',
      name: t('openApprovals.approvers'),
      width: 12,
      cell: (approval) => <Approvers {...approval} />,
    },
  ]
  if (!operator) return columns
  const actions: ConsoleColumn<ConsoleApproval> = {
    key: 'actions',
    name: t('openApprovals.action'),
    width: 8,
    cell: (approval) => <ReassignButton approval={approval} onReassign={onReassign} />,
  }
  return [...columns, actions]
}

interface ReassignButtonProps {
  readonly approval: ConsoleApproval
  readonly onReassign: (asked: Asked) => void
}

function ReassignButton({ approval, onReassign }: ReassignButtonProps) {
  const { t } = useTranslation()
  const subject = useNames()(approval.subject)
  if (approval.involvesCaller) return t('dashboard.ownRun')
  return (
    <Button
      size="compact-xs"
      variant="default"
      aria-label={`${t('openApprovals.reassign')}: ${approval.label}, ${subject}`}
      onClick={() => onReassign({ approval, subject })}
    >
      {t('openApprovals.reassign')}
    </Button>
  )
}

function Approvers({ approvers, hasMore }: Pick<ConsoleApproval, 'approvers' | 'hasMore'>) {
  const { t } = useTranslation()
  const nameOf = useNames()
  if (approvers.length === 0) return t('timeline.nobody')
  return isolated(approvers.map((login) => nameOf(login)).join(', ') + (hasMore ? ', …' : ''))
}
