import { Button, Modal, Stack, Text, Textarea } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { useTranslation } from '../../app/i18n.tsx'
import { DialogFooter } from '../../components/dialog-footer.tsx'
import { useSay } from '../../components/notices.tsx'
import { maxReason } from '../../components/reason-field.tsx'
import { Failure } from '../../components/states.tsx'

interface ReasonDialogProps<T> {
  /** What is done; also the label of its button. */
  readonly title: string
  readonly text: string
  readonly send: (reason: string) => Promise<T>
  /** What the answer says, for the operator. */
  readonly done: (answer: T) => string
  readonly onClose: () => void
}

/** A change by an operator, which needs a reason. */
export function ReasonDialog<T>({ title, text, send, done, onClose }: ReasonDialogProps<T>) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const say = useSay()
  const [reason, setReason] = useState('')
  const [isAsked, setAsked] = useState(false)
  const change = useMutation({
    mutationFn: () => send(reason.trim()),
    onSuccess: (answer) => {
      say(done(answer))
      onClose()
    },
    onSettled: () => client.invalidateQueries({ queryKey: ['admin'] }),
  })
  const isMissing = reason.trim() === ''
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    setAsked(true)
    if (!isMissing) change.mutate()
  }
  return (
    <Modal opened onClose={onClose} centered title={title} closeButtonProps={{ 'aria-label': t('action.close') }}>
      <form onSubmit={submit} noValidate>
        <Stack>
          <Text>{text}</Text>
          <Textarea
            label={t('dashboard.reason')}
            required
            autosize
            minRows={2}
            maxRows={6}
            maxLength={maxReason}
            value={reason}
            onChange={(event) => setReason(event.currentTarget.value)}
            error={isAsked && isMissing ? t('register.required') : undefined}
            data-autofocus
          />
          {change.error !== null && <Failure error={change.error} />}
          <DialogFooter onCancel={onClose}>
            <Button type="submit" color="red" loading={change.isPending}>
              {title}
            </Button>
          </DialogFooter>
        </Stack>
      </form>
    </Modal>
  )
}
