import { Button, Modal, Stack, Text, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useEffect, useState } from 'react'
import type { EnrolledFactor, TotpEnrolment } from '#features/account/contract/account.ts'
import { beginTotp, confirmTotp } from '../../api/account.ts'
import { ApiError } from '../../api/call.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { CopyButton } from '../../components/copy-button.tsx'
import { DialogFooter } from '../../components/dialog-footer.tsx'
import { QrCode } from '../../components/qr-code.tsx'
import { Failure, Loading, useFailureText } from '../../components/states.tsx'
import { GivenUp, useStepUp } from './step-up.tsx'

interface TotpDialogProps {
  readonly onClose: () => void
  readonly onEnrolled: (answer: EnrolledFactor) => void
}

/** The authenticator app scans a code, and the user enters one in return. */
export function TotpDialog({ onClose, onEnrolled }: TotpDialogProps) {
  const { t } = useTranslation()
  const guarded = useStepUp()
  const begin = useMutation({
    mutationFn: () => guarded(beginTotp),
    onError: (error) => {
      if (error instanceof GivenUp) onClose()
    },
  })
  const { mutate } = begin
  useEffect(() => mutate(), [mutate])
  return (
    <Modal
      opened
      onClose={onClose}
      title={t('security.addTotp')}
      closeOnClickOutside={false}
      closeButtonProps={{ 'aria-label': t('action.close') }}
    >
      {begin.data !== undefined ? (
        <Confirmation begun={begin.data} onCancel={onClose} onEnrolled={onEnrolled} />
      ) : begin.error === null ? (
        <Loading rows={2} />
      ) : (
        <Failure error={begin.error} onRetry={() => mutate()} />
      )}
    </Modal>
  )
}

interface ConfirmationProps {
  readonly begun: TotpEnrolment
  readonly onCancel: () => void
  readonly onEnrolled: (answer: EnrolledFactor) => void
}

function Confirmation({ begun: { enrolment, secret, uri, qr }, onCancel, onEnrolled }: ConfirmationProps) {
  const { t } = useTranslation()
  const guarded = useStepUp()
  const [code, setCode] = useState('')
  const [name, setName] = useState('')
  const confirm = useMutation({
    mutationFn: () =>
      guarded(() =>
        confirmTotp({
          enrolment,
          code: code.replaceAll(/\s/g, ''),
          ...(name.trim() === '' ? {} : { name: name.trim() }),
        }),
      ),
    onSuccess: onEnrolled,
  })
  const failureText = useFailureText()
  const isRejected = confirm.error instanceof ApiError && confirm.error.status === 400
  const send = (event: FormEvent): void => {
    event.preventDefault()
    if (code.trim() !== '') confirm.mutate()
  }
  return (
    <form onSubmit={send}>
      <Stack>
        <Text>{t('security.scan')}</Text>
        <a href={uri} className="qr-link">
          <QrCode {...qr} />
        </a>
        <Stack gap="xs" align="start">
          <Text size="sm">{t('security.typeSecret')}</Text>
          <pre className="value">{secret}</pre>
          <CopyButton value={secret} label={t('security.secret')} />
        </Stack>
        <TextInput
          label={t('security.code')}
          description={t('security.codeText')}
          value={code}
          onChange={(event) => {
            setCode(event.currentTarget.value)
            confirm.reset()
          }}
          error={isRejected && confirm.error instanceof ApiError ? failureText(confirm.error) : undefined}
          inputMode="numeric"
          autoComplete="one-time-code"
          maxLength={12}
          required
          data-autofocus
        />
        <TextInput
          label={t('security.name')}
          description={t('security.nameText')}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          maxLength={64}
        />
        {confirm.error !== null && !isRejected && !(confirm.error instanceof GivenUp) && (
          <Failure error={confirm.error} />
        )}
        <DialogFooter onCancel={onCancel}>
          <Button type="submit" loading={confirm.isPending}>
            {t('security.confirm')}
          </Button>
        </DialogFooter>
      </Stack>
    </form>
  )
}
