import { Button, Modal, Stack, Text, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import type { EnrolledFactor } from '#features/account/contract/account.ts'
import { beginPasskey, confirmPasskey } from '../../api/account.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { DialogFooter } from '../../components/dialog-footer.tsx'
import { Failure } from '../../components/states.tsx'
import { canMakePasskeys, makePasskey, PasskeyRefused } from './make-passkey.ts'
import { GivenUp, useStepUp } from './step-up.tsx'

interface PasskeyDialogProps {
  readonly onClose: () => void
  readonly onEnrolled: (answer: EnrolledFactor) => void
}

/** The browser calls the device, and the gateway stores the device's answer. */
export function PasskeyDialog({ onClose, onEnrolled }: PasskeyDialogProps) {
  const { t } = useTranslation()
  const guarded = useStepUp()
  const [name, setName] = useState('')
  const [resume, setResume] = useState<() => void>()
  const enrol = useMutation({
    mutationFn: async () => {
      const { enrolment, options } = await guarded(beginPasskey)
      // The login was in another tab, and browsers create passkeys only for the page in front.
      if (!document.hasFocus()) await new Promise<void>((resolve) => setResume(() => resolve))
      setResume(undefined)
      const response = await makePasskey(options)
      return await guarded(() =>
        confirmPasskey({ enrolment, response, ...(name.trim() === '' ? {} : { name: name.trim() }) }),
      )
    },
    onSuccess: onEnrolled,
  })
  const send = (event: FormEvent): void => {
    event.preventDefault()
    if (resume === undefined) enrol.mutate()
    else resume()
  }
  const { error } = enrol
  return (
    <Modal
      opened
      onClose={onClose}
      title={t('security.addPasskey')}
      closeButtonProps={{ 'aria-label': t('action.close') }}
    >
      {canMakePasskeys() ? (
        <form onSubmit={send}>
          <Stack>
            <Text>{t('security.passkeyText')}</Text>
            <TextInput
              label={t('security.name')}
              description={t('security.nameText')}
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
              maxLength={64}
              data-autofocus
            />
            {error instanceof PasskeyRefused && (
              <Text c="var(--mantine-color-error)" role="alert">
                {t('security.passkeyRefused')}
              </Text>
            )}
            {error !== null && !(error instanceof PasskeyRefused) && !(error instanceof GivenUp) && (
              <Failure error={error} />
            )}
            {resume !== undefined && <Text role="status">{t('security.passkeyContinueText')}</Text>}
            <DialogFooter onCancel={onClose}>
              <Button type="submit" loading={enrol.isPending && resume === undefined}>
                {t(resume === undefined ? 'security.makePasskey' : 'security.passkeyContinue')}
              </Button>
            </DialogFooter>
          </Stack>
        </form>
      ) : (
        <Text>{t('security.noPasskeys')}</Text>
      )}
    </Modal>
  )
}
