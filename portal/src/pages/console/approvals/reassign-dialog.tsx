import { useState } from 'react'
import type { ConsoleApproval } from '#features/portal/contract/console-approvals.ts'
import { reassign } from '../../../api/console-runs.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { PersonPicker, pickedName } from '../../../components/person-picker.tsx'
import { ReasonDialog } from '../../../components/reason-dialog.tsx'

interface ReassignDialogProps {
  readonly approval: Pick<ConsoleApproval, 'id' | 'version' | 'label'>
  /** The name of the user whom it is about. */
  readonly subject: string
  readonly onClose: () => void
}

/** Gives an open approval to another user. */
export function ReassignDialog({ approval: { id, version, label }, subject, onClose }: ReassignDialogProps) {
  const { t } = useTranslation()
  const [people, setPeople] = useState<readonly string[]>([])
  const [to = ''] = people
  return (
    <ReasonDialog
      title={t('openApprovals.reassignTitle', { label, subject })}
      text={t('openApprovals.reassignText')}
      button={t('openApprovals.reassign')}
      isFilled={to !== ''}
      fields={(isAsked) => (
        <PersonPicker
          label={t('openApprovals.newApprover')}
          value={people}
          onChange={setPeople}
          single
          error={isAsked && to === '' ? t('register.required') : undefined}
        />
      )}
      send={(reason) => reassign(id, { version, to, reason })}
      done={({ approvers }) => t('openApprovals.reassigned', { label, login: approvers.map(pickedName).join(', ') })}
      changed={t('openApprovals.changed')}
      onClose={onClose}
    />
  )
}
