import { useState } from 'react'
import type { AdminAction, AdminRun } from '#features/portal/contract/main-admin.ts'
import { intervene } from '../api/admin.ts'
import { useTranslation } from '../app/i18n.tsx'
import type { MessageKey } from '../app/messages.ts'
import { PersonPicker } from './person-picker.tsx'
import { ReasonDialog } from './reason-dialog.tsx'

interface InterventionDialogProps {
  readonly run: AdminRun
  readonly action: AdminAction
  readonly onClose: () => void
}

interface Words {
  readonly title: MessageKey
  readonly text: MessageKey
  readonly button: MessageKey
  readonly done: MessageKey
}

const words: Readonly<Record<AdminAction, Words>> = {
  retry: {
    title: 'dashboard.retryTitle',
    text: 'dashboard.retryText',
    button: 'dashboard.retry',
    done: 'dashboard.retried',
  },
  skip: {
    title: 'dashboard.skipTitle',
    text: 'dashboard.skipText',
    button: 'dashboard.skip',
    done: 'dashboard.skipped',
  },
  cancel: {
    title: 'dashboard.cancelTitle',
    text: 'dashboard.cancelText',
    button: 'dashboard.cancel',
    done: 'dashboard.cancelled',
  },
}

/** What an operator does with a run. */
export function InterventionDialog({ run, action, onClose }: InterventionDialogProps) {
  const { t } = useTranslation()
  const { id, name, fence, touched } = run
  const [people, setPeople] = useState<readonly string[]>([])
  const [approver] = people
  const needsApprover = action === 'retry' && run.incident?.code === 'NO_APPROVERS'
  const { title, text, button, done } = words[action]
  return (
    <ReasonDialog
      title={t(title, { name })}
      text={t(needsApprover ? 'dashboard.approverText' : text)}
      button={t(button)}
      isHarmful={action === 'cancel'}
      {...(action === 'cancel' && touched ? { warning: t('dashboard.touched') } : {})}
      {...(needsApprover
        ? { fields: () => <PersonPicker label={t('dashboard.approver')} value={people} onChange={setPeople} single /> }
        : {})}
      {...(action === 'retry' && approver === undefined ? { optional: t('dashboard.reason') } : {})}
      send={(reason) => intervene({ id, action, fence, reason, ...(approver === undefined ? {} : { approver }) })}
      done={() => t(done, { name })}
      changed={t('dashboard.changed')}
      onClose={onClose}
    />
  )
}
