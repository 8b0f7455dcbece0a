import { Button, Code, Group, Modal, NativeSelect, Stack, Text, TextInput } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import type { CreatedScimToken } from '#features/portal/contract/console-tokens.ts'
import { createToken } from '../../../api/scim-clients.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { CopyButton } from '../../../components/copy-button.tsx'
import { DialogFooter } from '../../../components/dialog-footer.tsx'
import { Failure } from '../../../components/states.tsx'

/** In days; the last does not end. */
const lifetimes = ['90', '180', '365', ''] as const

interface NewTokenDialogProps {
  /** The tenant whose client gets the token. */
  readonly client: string
  readonly onClose: () => void
}

/** Creates a token of a SCIM tenant, and shows it once. */
export function NewTokenDialog({ client, onClose }: NewTokenDialogProps) {
  const { t } = useTranslation()
  const [created, setCreated] = useState<CreatedScimToken>()
  return (
    <Modal
      opened
      onClose={onClose}
      centered
      title={t('scim.create')}
      // A click beside it must not lose what is shown once.
      closeOnClickOutside={created === undefined}
      closeButtonProps={{ 'aria-label': t('action.close') }}
    >
      {created === undefined ? (
        <TokenForm client={client} onCreated={setCreated} onClose={onClose} />
      ) : (
        <Stack>
          <Text role="status">{t('scim.createdText', { name: created.name, client: created.client })}</Text>
          <Code block tabIndex={0}>
            {created.text}
          </Code>
          <Group>
            <CopyButton value={created.text} label={t('scim.token')} />
          </Group>
          <DialogFooter>
            <Button onClick={onClose}>{t('scim.copied')}</Button>
          </DialogFooter>
        </Stack>
      )}
    </Modal>
  )
}

interface TokenFormProps {
  readonly client: string
  readonly onCreated: (token: CreatedScimToken) => void
  readonly onClose: () => void
}

function TokenForm({ client, onCreated, onClose }: TokenFormProps) {
  const { t, tn } = useTranslation()
  const queries = useQueryClient()
  const [name, setName] = useState('default')
  const [days, setDays] = useState('365')
  const [isAsked, setAsked] = useState(false)
  const create = useMutation({
    mutationFn: () =>
      createToken({
        client,
        name: name.trim(),
        expiresInDays: days === '' ? null : Number(days),
      }),
    onSuccess: onCreated,
    // No text of a token stays in memory longer than it is shown.
    gcTime: 0,
    onSettled: () => queries.invalidateQueries({ queryKey: ['admin', 'scim-tokens'] }),
  })
  const isFilled = name.trim() !== ''
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    setAsked(true)
    if (isFilled) create.mutate()
  }
  const missing = (value: string) => (isAsked && value.trim() === '' ? t('register.required') : undefined)
  return (
    <form onSubmit={submit} noValidate>
      <Stack>
        <TextInput
          label={t('tenants.name')}
          description={t('scim.nameHint')}
          required
          maxLength={64}
          autoCapitalize="none"
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          error={missing(name)}
          data-autofocus
        />
        <NativeSelect
          label={t('scim.expires')}
          value={days}
          onChange={(event) => setDays(event.currentTarget.value)}
          data={lifetimes.map((value) => ({
            value,
            label: value === '' ? t('scim.neverExpires') : tn('scim.inDays', Number(value)),
          }))}
        />
        {create.error !== null && <Failure error={create.error} />}
        <DialogFooter onCancel={onClose}>
          <Button type="submit" loading={create.isPending}>
            {t('scim.create')}
          </Button>
        </DialogFooter>
      </Stack>
    </form>
  )
}
