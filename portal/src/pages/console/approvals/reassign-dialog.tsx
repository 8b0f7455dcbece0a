import { Alert, Button, Modal, Stack, Text, Textarea } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import type { ConsoleApproval } from '#contract/console-approvals.ts'
import { ApiError } from '../../../api/call.ts'
import { reassign } from '../../../api/console-runs.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { DialogFooter } from '../../../components/dialog-footer.tsx'
import { Icon } from '../../../components/icon.tsx'
import { useSay } from '../../../components/notices.tsx'
import { PersonPicker, pickedName } from '../../../components/person-picker.tsx'
import { maxReason } from '../../../components/reason-field.tsx'
import { Failure } from '../../../components/states.tsx'

/** The gateway's statuses for an approval that was decided or reassigned since it was shown. */
const changed: ReadonlySet<number> = new Set([409, 412])

interface ReassignDialogProps {
  readonly approval: ConsoleApproval
  readonly onClose: () => void
}

/** Gives an open approval to another user. */
export function ReassignDialog({ approval, onClose }: ReassignDialogProps) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const say = useSay()
  const [to, setTo] = useState<readonly string[]>([])
  const [reason, setReason] = useState('')
  const [isAsked, setAsked] = useState(false)
  const { id, version, label, subject } = approval
  const [login = ''] = to
  const isMissing = login === '' || reason.trim() === ''
  const change = useMutation({
    mutationFn: () => reassign(id, { version, to: login, reason: reason.trim() }),
    onSuccess: ({ approvers }) => {
      say(t('openApprovals.reassigned', { label, login: approvers.map(pickedName).join(', ') }))
      onClose()
    },
    onSettled: () => client.invalidateQueries({ queryKey: ['admin'] }),
  })
  const send = (event: FormEvent): void => {
    event.preventDefault()
    setAsked(true)
    if (!isMissing) change.mutate()
  }
  const isChanged = change.error instanceof ApiError && changed.has(change.error.status)
  return (
    <Modal
      opened
      onClose={onClose}
      title={t('openApprovals.reassignTitle', { label, subject })}
      closeButtonProps={{ 'aria-label': t('action.close') }}
    >
      <form onSubmit={send} noValidate>
        <Stack>
          <Text>{t('openApprovals.reassignText')}</Text>
          <PersonPicker
            label={t('openApprovals.newApprover')}
            value={to}
            onChange={setTo}
            single
            error={isAsked && login === '' ? t('register.required') : undefined}
          />
          <Textarea
            label={t('dashboard.reason')}
            required
            autosize
            minRows={2}
            maxRows={6}
            maxLength={maxReason}
            value={reason}
            onChange={(event) => setReason(event.currentTarget.value)}
            error={isAsked && reason.trim() === '' ? t('register.required') : undefined}
          />
          {isChanged ? (
            <Alert color="yellow" variant="outline" icon={<Icon name="warning" />} role="alert">
              {t('openApprovals.changed')}
            </Alert>
          ) : (
            change.error !== null && <Failure error={change.error} />
          )}
          <DialogFooter onCancel={onClose}>
            <Button type="submit" loading={change.isPending} disabled={isChanged}>
              {t('openApprovals.reassign')}
            </Button>
          </DialogFooter>
        </Stack>
      </form>
    </Modal>
  )
}
