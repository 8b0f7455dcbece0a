import { Alert, Button, Modal, Stack, Text, Textarea } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import type { AdminAction, AdminRun } from '#contract/main-admin.ts'
import { intervene } from '../api/admin.ts'
import { ApiError } from '../api/call.ts'
import { useTranslation } from '../app/i18n.tsx'
import type { MessageKey } from '../app/messages.ts'
import { DialogFooter } from './dialog-footer.tsx'
import { Icon } from './icon.tsx'
import { useSay } from './notices.tsx'
import { maxReason } from './reason-field.tsx'
import { Failure } from './states.tsx'

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

/** The gateway's statuses for a run that changed since it was shown. */
const changed: ReadonlySet<number> = new Set([409, 412])

export function InterventionDialog({ run, action, onClose }: InterventionDialogProps) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const say = useSay()
  const [reason, setReason] = useState('')
  const [isAsked, setAsked] = useState(false)
  const { title, text, button, done } = words[action]
  const needsReason = action !== 'retry'
  const change = useMutation({
    mutationFn: () => intervene({ id: run.id, action, fence: run.fence, reason: reason.trim() }),
    onSuccess: () => {
      say(t(done, { name: run.name }))
      onClose()
    },
    onSettled: () => client.invalidateQueries({ queryKey: ['admin'] }),
  })
  const isMissing = needsReason && reason.trim() === ''
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
      title={t(title, { name: run.name })}
      closeButtonProps={{ 'aria-label': t('action.close') }}
    >
      <form onSubmit={send} noValidate>
        <Stack>
          <Text>{t(text)}</Text>
          {action === 'cancel' && run.touched && (
            <Alert color="yellow" variant="outline" icon={<Icon name="warning" />}>
              {t('dashboard.touched')}
            </Alert>
          )}
          <Textarea
            label={t('dashboard.reason')}
            required={needsReason}
            autosize
            minRows={2}
            maxRows={6}
            maxLength={maxReason}
            value={reason}
            onChange={(event) => setReason(event.currentTarget.value)}
            error={isAsked && isMissing ? t('register.required') : undefined}
            data-autofocus
          />
          {isChanged ? (
            <Alert color="yellow" variant="outline" icon={<Icon name="warning" />} role="alert">
              {t('dashboard.changed')}
            </Alert>
          ) : (
            change.error !== null && <Failure error={change.error} />
          )}
          <DialogFooter onCancel={onClose}>
            <Button
              type="submit"
              loading={change.isPending}
              disabled={isChanged}
              color={action === 'cancel' ? 'red' : 'primary'}
            >
              {t(button)}
            </Button>
          </DialogFooter>
        </Stack>
      </form>
    </Modal>
  )
}
