import { Button, Modal, Stack, Text, Textarea } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import type { ApprovalDetails } from '#contract/main-requests.ts'
import { approvalsQuery, reassign } from '../../api/approvals.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { DialogFooter } from '../../components/dialog-footer.tsx'
import { useSay } from '../../components/notices.tsx'
import { PersonPicker, pickedName } from '../../components/person-picker.tsx'
import { maxReason } from '../../components/reason-field.tsx'
import { Failure } from '../../components/states.tsx'

interface ReassignDialogProps {
  readonly details: ApprovalDetails
  readonly onClose: () => void
}

/** Passes an approval to another user. */
export function ReassignDialog({ details: { approval, label, version }, onClose }: ReassignDialogProps) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const navigate = useNavigate()
  const say = useSay()
  const [people, setPeople] = useState<readonly string[]>([])
  const [reason, setReason] = useState('')
  const [isChecked, setChecked] = useState(false)
  const [to] = people
  const pass = useMutation({
    mutationFn: (login: string) => reassign(approval, { to: login, reason: reason.trim(), version }),
    onSuccess: async (_, login) => {
      say(t('reassign.done', { label, who: pickedName(login) }))
      client.removeQueries({ queryKey: ['approval', approval] })
      await client.invalidateQueries({ queryKey: approvalsQuery.queryKey })
      await navigate({ to: '/approvals' })
    },
  })
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    setChecked(true)
    if (to !== undefined) pass.mutate(to)
  }
  return (
    <Modal
      opened
      onClose={onClose}
      title={t('reassign.title')}
      centered
      closeButtonProps={{ 'aria-label': t('action.close') }}
    >
      <form onSubmit={submit} noValidate>
        <Stack>
          <Text>{t('reassign.text')}</Text>
          <PersonPicker
            label={t('reassign.to')}
            value={people}
            onChange={setPeople}
            single
            error={isChecked && to === undefined ? t('deputies.whoRequired') : undefined}
          />
          <Textarea
            label={t('approval.commentOptional')}
            value={reason}
            maxLength={maxReason}
            autosize
            minRows={2}
            onChange={(event) => setReason(event.currentTarget.value)}
          />
          {pass.error !== null && <Failure error={pass.error} />}
          <DialogFooter onCancel={onClose} cancel={t('reassign.keep')}>
            <Button type="submit" loading={pass.isPending}>
              {t('reassign.confirm')}
            </Button>
          </DialogFooter>
        </Stack>
      </form>
    </Modal>
  )
}
