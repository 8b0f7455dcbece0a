import { ActionIcon, type MantineColorScheme, Menu, useMantineColorScheme } from '@mantine/core'
import { Icon, type IconName } from '../components/icon.tsx'
import { MenuChoice } from '../components/menu-choice.tsx'
import { useTranslation } from './i18n.tsx'
import type { MessageKey } from './messages.ts'

const schemes: readonly { readonly scheme: MantineColorScheme; readonly icon: IconName; readonly label: MessageKey }[] =
  [
    { scheme: 'light', icon: 'sun', label: 'theme.light' },
    { scheme: 'dark', icon: 'moon', label: 'theme.dark' },
    { scheme: 'auto', icon: 'screen', label: 'theme.system' },
  ]

export function ThemeMenu() {
  const { t } = useTranslation()
  const { colorScheme, setColorScheme } = useMantineColorScheme()
  const current = schemes.find(({ scheme }) => scheme === colorScheme)
  return (
    <Menu position="bottom-end" withinPortal={false} withInitialFocusPlaceholder={false}>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label={t('shell.theme')}>
          <Icon name={current?.icon ?? 'screen'} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {schemes.map(({ scheme, icon, label }) => (
          <MenuChoice
            key={scheme}
            icon={icon}
            label={t(label)}
            isChosen={scheme === colorScheme}
            onChoose={() => setColorScheme(scheme)}
          />
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}
