import { Button, Group, Modal, Paper, Text, TextInput } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import type { AccountFactor } from '#features/account/contract/account.ts'
import { factorsQuery, removeFactor, renameFactor } from '../../api/account.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { DialogFooter } from '../../components/dialog-footer.tsx'
import { Icon } from '../../components/icon.tsx'
import { useSay } from '../../components/notices.tsx'
import { useSayFailure, useStepUp } from './step-up.tsx'

const maxName = 64

export function FactorCard({ factor }: { readonly factor: AccountFactor }) {
  const { t, dateTime, relative } = useTranslation()
  const { kind, name, created, lastUsed } = factor
  const [doing, setDoing] = useState<'rename' | 'remove'>()
  const close = (): void => setDoing(undefined)
  return (
    <Paper withBorder p="md">
      <Group justify="space-between" gap="sm">
        <Group gap="sm" wrap="nowrap">
          <Icon name={kind === 'totp' ? 'phone' : 'key'} />
          <div>
            <Text fw={600}>{name}</Text>
            <Text size="sm" c="dimmed">
              {t(kind === 'totp' ? 'security.totp' : 'security.passkey')}
              {' · '}
              {t('security.created', { time: dateTime(created) })}
              {' · '}
              {lastUsed === undefined ? t('security.neverUsed') : t('security.lastUsed', { time: relative(lastUsed) })}
            </Text>
          </div>
        </Group>
        <Group gap="xs">
          <Button
            variant="default"
            size="xs"
            aria-label={t('security.renameWhich', { name })}
            onClick={() => setDoing('rename')}
          >
            {t('security.rename')}
          </Button>
          <Button
            variant="default"
            size="xs"
            aria-label={t('security.removeWhich', { name })}
            onClick={() => setDoing('remove')}
          >
            {t('security.remove')}
          </Button>
        </Group>
      </Group>
      {doing === 'rename' && <RenameDialog factor={factor} onClose={close} />}
      {doing === 'remove' && <RemoveDialog factor={factor} onClose={close} />}
    </Paper>
  )
}

interface DialogProps {
  readonly factor: AccountFactor
  readonly onClose: () => void
}

function RenameDialog({ factor: { id, name }, onClose }: DialogProps) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const sayFailure = useSayFailure()
  const [next, setNext] = useState(name)
  const rename = useMutation({
    mutationFn: () => renameFactor({ id, name: next.trim() }),
    onSuccess: onClose,
    onError: sayFailure,
    onSettled: () => client.invalidateQueries({ queryKey: factorsQuery.queryKey }),
  })
  const send = (event: FormEvent): void => {
    event.preventDefault()
    if (next.trim() !== '') rename.mutate()
  }
  return (
    <Modal
      opened
      onClose={onClose}
      title={t('security.renameWhich', { name })}
      closeButtonProps={{ 'aria-label': t('action.close') }}
    >
      <form onSubmit={send}>
        <TextInput
          label={t('security.name')}
          value={next}
          maxLength={maxName}
          onChange={(event) => setNext(event.currentTarget.value)}
          required
          data-autofocus
        />
        <DialogFooter onCancel={onClose}>
          <Button type="submit" loading={rename.isPending}>
            {t('security.rename')}
          </Button>
        </DialogFooter>
      </form>
    </Modal>
  )
}

function RemoveDialog({ factor: { id, name }, onClose }: DialogProps) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const say = useSay()
  const guarded = useStepUp()
  const sayFailure = useSayFailure()
  const remove = useMutation({
    mutationFn: () => guarded(() => removeFactor(id)),
    onSuccess: () => {
      say(t('security.removed'))
      onClose()
    },
    onError: sayFailure,
    onSettled: () => client.invalidateQueries({ queryKey: factorsQuery.queryKey }),
  })
  return (
    <Modal
      opened
      onClose={onClose}
      title={t('security.removeWhich', { name })}
      closeButtonProps={{ 'aria-label': t('action.close') }}
    >
      <Text>{t('security.removeText')}</Text>
      <DialogFooter onCancel={onClose} cancel={t('security.keep')} focusCancel>
        <Button color="red" loading={remove.isPending} onClick={() => remove.mutate()}>
          {t('security.remove')}
        </Button>
      </DialogFooter>
    </Modal>
  )
}
