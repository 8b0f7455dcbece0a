import { Button, Modal, Stack, Text, Textarea } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { ApiError } from '../../api/call.ts'
import { cancelRequest } from '../../api/requests.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { DialogFooter } from '../../components/dialog-footer.tsx'
import { useSay } from '../../components/notices.tsx'
import { maxReason } from '../../components/reason-field.tsx'
import { Failure } from '../../components/states.tsx'

interface CancelDialogProps {
  readonly id: string
  readonly label: string
  readonly opened: boolean
  readonly onClose: () => void
}

export function CancelDialog({ id, label, opened, onClose }: CancelDialogProps) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const say = useSay()
  const [reason, setReason] = useState('')
  const refresh = async (): Promise<void> => {
    await Promise.all([
      client.invalidateQueries({ queryKey: ['request', id] }),
      client.invalidateQueries({ queryKey: ['requests'] }),
    ])
  }
  const cancel = useMutation({
    mutationFn: () => cancelRequest(id, reason.trim()),
    onSuccess: async () => {
      say(t('cancel.done', { label }))
      onClose()
      await refresh()
    },
    // It continued meanwhile: the page shows the new state.
    onError: async (error) => {
      if (error instanceof ApiError && error.status === 409) await refresh()
    },
  })
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    cancel.mutate()
  }
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={t('cancel.title')}
      closeButtonProps={{ 'aria-label': t('action.close') }}
    >
      <form onSubmit={submit}>
        <Stack>
          <Text>{t('cancel.text', { label })}</Text>
          <Textarea
            label={t('cancel.reason')}
            value={reason}
            maxLength={maxReason}
            autosize
            minRows={2}
            onChange={(event) => setReason(event.currentTarget.value)}
            data-autofocus
          />
          {cancel.error !== null && <Failure error={cancel.error} />}
          <DialogFooter onCancel={onClose} cancel={t('cancel.keep')}>
            <Button type="submit" color="red" loading={cancel.isPending}>
              {t('cancel.confirm')}
            </Button>
          </DialogFooter>
        </Stack>
      </form>
    </Modal>
  )
}
