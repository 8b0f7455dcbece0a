import { Alert, Button, Modal, Stack, Text, Textarea } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, type ReactNode, useState } from 'react'
import { ApiError } from '../api/call.ts'
import { useTranslation } from '../app/i18n.tsx'
import { DialogFooter } from './dialog-footer.tsx'
import { Icon } from './icon.tsx'
import { useSay } from './notices.tsx'
import { maxReason } from './reason-field.tsx'
import { Failure } from './states.tsx'

/** The gateway's statuses for something that changed since it was shown. */
const changedStatuses: ReadonlySet<number> = new Set([409, 412])

interface ReasonDialogProps<T> {
  readonly title: string
  readonly text: string
  /** The label of the button; the title if absent. */
  readonly button?: string
  /** The label of the button that closes the dialog. */
  readonly cancel?: string
  /** Whether the change takes something away. */
  readonly isHarmful?: boolean
  /** What the user should know before sending. */
  readonly warning?: string
  /** Fields before the reason; `isAsked` once the user has tried to send. */
  readonly fields?: (isAsked: boolean) => ReactNode
  /** Whether these fields are filled in. */
  readonly isFilled?: boolean
  /** The label of a reason that may be empty. */
  readonly optional?: string
  readonly send: (reason: string) => Promise<T>
  /** What the answer says, for the user. */
  readonly done: (answer: T) => string
  /** Runs before the dialog closes. */
  readonly onSent?: () => Promise<void>
  /** Shown if what the dialog is about has changed; sending again would fail. */
  readonly changed?: string
  readonly onClose: () => void
}

/** A change with its reason. */
export function ReasonDialog<T>(props: ReasonDialogProps<T>) {
  const { title, text, button = title, cancel, isHarmful = false, warning, fields, isFilled = true } = props
  const { optional, send, done, onSent, changed, onClose } = props
  const { t } = useTranslation()
  const client = useQueryClient()
  const say = useSay()
  const [reason, setReason] = useState('')
  const [isAsked, setAsked] = useState(false)
  const change = useMutation({
    mutationFn: () => send(reason.trim()),
    onSuccess: async (answer) => {
      say(done(answer))
      await onSent?.()
      onClose()
    },
    onSettled: () => client.invalidateQueries({ queryKey: ['admin'] }),
  })
  const isMissing = optional === undefined && reason.trim() === ''
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    setAsked(true)
    if (!isMissing && isFilled) change.mutate()
  }
  const { error } = change
  const hasChanged = changed !== undefined && error instanceof ApiError && changedStatuses.has(error.status)
  return (
    <Modal opened onClose={onClose} centered title={title} closeButtonProps={{ 'aria-label': t('action.close') }}>
      <form onSubmit={submit} noValidate>
        <Stack>
          <Text>{text}</Text>
          {warning !== undefined && <Warning text={warning} />}
          {fields?.(isAsked)}
          <Textarea
            label={optional ?? t('dashboard.reason')}
            required={optional === undefined}
            autosize
            minRows={2}
            maxRows={6}
            maxLength={maxReason}
            value={reason}
            onChange={(event) => setReason(event.currentTarget.value)}
            error={isAsked && isMissing ? t('register.required') : undefined}
            {...(fields === undefined ? { 'data-autofocus': true } : {})}
          />
          {hasChanged ? <Warning text={changed} role="alert" /> : error !== null && <Failure error={error} />}
          <DialogFooter onCancel={onClose} {...(cancel === undefined ? {} : { cancel })}>
            <Button
              type="submit"
              color={isHarmful ? 'red' : 'primary'}
              loading={change.isPending}
              disabled={hasChanged}
            >
              {button}
            </Button>
          </DialogFooter>
        </Stack>
      </form>
    </Modal>
  )
}

function Warning({ text, role }: { readonly text: string; readonly role?: 'alert' }) {
  return (
    <Alert color="yellow" variant="outline" icon={<Icon name="warning" />} {...(role === undefined ? {} : { role })}>
      {text}
    </Alert>
  )
}
