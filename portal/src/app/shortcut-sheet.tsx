import { Kbd, Modal, Switch } from '@mantine/core'
import { DialogFooter } from '../components/dialog-footer.tsx'
import { type Fact, Facts } from '../components/facts.tsx'
import { useConfig } from './config.tsx'
import { useTranslation } from './i18n.tsx'
import type { OverlayProps } from './overlays.tsx'
import { shownPages } from './pages.ts'
import { settings } from './settings.ts'
import { useShortcutSetting } from './shortcut-setting.ts'
import { actionKeys, pageKeys, paletteKey } from './shortcuts.ts'

/** All keyboard shortcuts, and a switch that turns off those of a single key. */
export function ShortcutSheet({ onClose }: OverlayProps) {
  const { t } = useTranslation()
  const config = useConfig()
  const [areOn, setOn] = useShortcutSetting()
  const pages = shownPages(config, settings.apis)
  const facts: readonly Fact[] = [
    { name: t('palette.title'), value: <Kbd>{paletteKey(navigator.platform)}</Kbd> },
    ...actionKeys.map(({ key, text }) => ({ name: t(text), value: <Kbd>{key}</Kbd> })),
    ...pageKeys.flatMap(({ key, id }) => {
      const page = pages.find((one) => one.id === id)
      const keys = (
        <>
          <Kbd>g</Kbd> <Kbd>{key}</Kbd>
        </>
      )
      return page === undefined ? [] : [{ name: t(page.title), value: keys }]
    }),
  ]
  return (
    <Modal
      opened
      onClose={() => onClose('dismissed')}
      title={t('shortcuts.title')}
      returnFocus={false}
      closeButtonProps={{ 'aria-label': t('action.close') }}
    >
      <Facts facts={facts} />
      <Switch
        mt="md"
        label={t('shortcuts.on')}
        description={t('shortcuts.onText')}
        checked={areOn}
        onChange={(event) => setOn(event.currentTarget.checked)}
      />
      <DialogFooter onCancel={() => onClose('dismissed')} cancel={t('action.close')} />
    </Modal>
  )
}
