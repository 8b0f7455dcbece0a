import { Button, Group, Modal, SimpleGrid, Stack, Text } from '@mantine/core'
import { saveFile } from '../../api/download.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { CopyButton } from '../../components/copy-button.tsx'
import { DialogFooter } from '../../components/dialog-footer.tsx'
import { Icon } from '../../components/icon.tsx'

interface RecoveryCodesDialogProps {
  readonly codes: readonly string[]
  readonly onClose: () => void
}

/** They are shown only once. */
export function RecoveryCodesDialog({ codes, onClose }: RecoveryCodesDialogProps) {
  const { t } = useTranslation()
  const text = codes.join('\n')
  return (
    <Modal
      opened
      onClose={onClose}
      title={t('security.recovery')}
      closeOnClickOutside={false}
      closeOnEscape={false}
      withCloseButton={false}
    >
      <Stack>
        <Text>{t('security.codesOnce')}</Text>
        <SimpleGrid cols={2} spacing="xs" className="value">
          {codes.map((code) => (
            <code key={code}>{code}</code>
          ))}
        </SimpleGrid>
        <Group>
          <CopyButton value={text} label={t('security.recovery')} />
          <Button
            size="xs"
            variant="default"
            leftSection={<Icon name="download" size={16} />}
            onClick={() => saveFile(new Blob([`${text}\n`], { type: 'text/plain' }), 'recovery-codes.txt')}
          >
            {t('token.download')}
          </Button>
        </Group>
        <DialogFooter>
          <Button onClick={onClose}>{t('security.codesKept')}</Button>
        </DialogFooter>
      </Stack>
    </Modal>
  )
}
