import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { ApprovalDetails } from '#features/portal/contract/main-requests.ts'
import { approvalsQuery, reassign } from '../../api/approvals.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { PersonPicker, pickedName } from '../../components/person-picker.tsx'
import { ReasonDialog } from '../../components/reason-dialog.tsx'

interface ReassignDialogProps {
  readonly details: ApprovalDetails
  readonly onClose: () => void
}

/** Passes an approval to another user. */
export function ReassignDialog({ details: { approval, label, version }, onClose }: ReassignDialogProps) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const navigate = useNavigate()
  const [people, setPeople] = useState<readonly string[]>([])
  const [to = ''] = people
  return (
    <ReasonDialog
      title={t('reassign.title')}
      text={t('reassign.text')}
      button={t('reassign.confirm')}
      cancel={t('reassign.keep')}
      isFilled={to !== ''}
      fields={(isAsked) => (
        <PersonPicker
          label={t('reassign.to')}
          value={people}
          onChange={setPeople}
          single
          error={isAsked && to === '' ? t('deputies.whoRequired') : undefined}
        />
      )}
      optional={t('approval.commentOptional')}
      send={(reason) => reassign(approval, { to, reason, version })}
      done={() => t('reassign.done', { label, who: pickedName(to) })}
      onSent={async () => {
        client.removeQueries({ queryKey: ['approval', approval] })
        await client.invalidateQueries({ queryKey: approvalsQuery.queryKey })
        await navigate({ to: '/approvals' })
      }}
      onClose={onClose}
    />
  )
}
