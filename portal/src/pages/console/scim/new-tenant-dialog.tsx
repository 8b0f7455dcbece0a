import { Button, Modal, NativeSelect, Stack, Text, TextInput } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { clientNames } from '#features/scim/contract/client-names.ts'
import { createTenant } from '../../../api/scim-clients.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { DialogFooter } from '../../../components/dialog-footer.tsx'
import { useSay } from '../../../components/notices.tsx'
import { Failure } from '../../../components/states.tsx'

/** Adds a SCIM gateway with users of its own. */
export function NewTenantDialog({ onClose }: { readonly onClose: () => void }) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const say = useSay()
  const [name, setName] = useState('')
  const [profile, setProfile] = useState<string>(clientNames[0])
  const [path, setPath] = useState('')
  const [isAsked, setAsked] = useState(false)
  const add = useMutation({
    mutationFn: () =>
      createTenant({ name: name.trim(), profile, ...(path.trim() === '' ? {} : { path: path.trim() }) }),
    onSuccess: ({ address }) => {
      say(t('tenants.added', { address }))
      onClose()
    },
    onSettled: () => client.invalidateQueries({ queryKey: ['admin'] }),
  })
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    setAsked(true)
    if (name.trim() !== '') add.mutate()
  }
  return (
    <Modal
      opened
      onClose={onClose}
      centered
      title={t('tenants.add')}
      closeButtonProps={{ 'aria-label': t('action.close') }}
    >
      <form onSubmit={submit} noValidate>
        <Stack>
          <Text>{t('tenants.addText')}</Text>
          <TextInput
            label={t('tenants.name')}
            description={t('tenants.nameHint')}
            required
            data-autofocus
            maxLength={41}
            autoCapitalize="none"
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            error={isAsked && name.trim() === '' ? t('register.required') : undefined}
          />
          <NativeSelect
            label={t('tenants.profile')}
            description={t('tenants.profileHint')}
            value={profile}
            onChange={(event) => setProfile(event.currentTarget.value)}
            data={[...clientNames]}
          />
          <TextInput
            label={t('tenants.path')}
            description={t('tenants.pathHint')}
            maxLength={300}
            autoCapitalize="none"
            placeholder={`/tenants/${name.trim() === '' ? 'acme' : name.trim()}/scim`}
            value={path}
            onChange={(event) => setPath(event.currentTarget.value)}
          />
          {add.error !== null && <Failure error={add.error} />}
          <DialogFooter onCancel={onClose}>
            <Button type="submit" loading={add.isPending}>
              {t('tenants.add')}
            </Button>
          </DialogFooter>
        </Stack>
      </form>
    </Modal>
  )
}
