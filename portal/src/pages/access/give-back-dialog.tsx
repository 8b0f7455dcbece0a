import { Button, Modal, Stack, Text } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { TimedAccess } from '#features/portal/contract/main-access.ts'
import { accessQuery, giveBack } from '../../api/access.ts'
import { ApiError } from '../../api/call.ts'
import { userQuery } from '../../api/main.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { DialogFooter } from '../../components/dialog-footer.tsx'
import { useSay } from '../../components/notices.tsx'
import { Failure } from '../../components/states.tsx'

interface GiveBackDialogProps {
  readonly access: TimedAccess
  readonly onClose: () => void
}

export function GiveBackDialog({ access, onClose }: GiveBackDialogProps) {
  const { t, dateTime } = useTranslation()
  const client = useQueryClient()
  const say = useSay()
  const { id, kind, name, target, expires } = access
  const refresh = async (): Promise<void> => {
    await Promise.all(
      [accessQuery.queryKey, userQuery.queryKey, ['requests'], ['request']].map((queryKey) =>
        client.invalidateQueries({ queryKey }),
      ),
    )
  }
  const end = useMutation({
    mutationFn: () => giveBack(id),
    onSuccess: async () => {
      say(t('access.givenBack', { name }))
      onClose()
      await refresh()
    },
    // It ended meanwhile: the page shows the new state.
    onError: async (error) => {
      if (error instanceof ApiError && (error.status === 409 || error.status === 404)) await refresh()
    },
  })
  const text = kind === 'user' ? 'access.giveBackAccountText' : 'access.giveBackText'
  return (
    <Modal
      opened
      onClose={onClose}
      title={t('access.giveBackTitle')}
      closeButtonProps={{ 'aria-label': t('action.close') }}
    >
      <Stack>
        <Text>{t(text, { name, target, when: dateTime(expires) })}</Text>
        {end.error !== null && <Failure error={end.error} />}
        <DialogFooter onCancel={onClose} cancel={t('access.keep')} focusCancel>
          <Button loading={end.isPending} onClick={() => end.mutate()}>
            {t('access.giveBack')}
          </Button>
        </DialogFooter>
      </Stack>
    </Modal>
  )
}
