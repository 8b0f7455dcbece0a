import { ActionIcon, Menu } from '@mantine/core'
import { Icon } from '../components/icon.tsx'
import { MenuChoice } from '../components/menu-choice.tsx'
import { useTranslation } from './i18n.tsx'
import { isLanguage, languages } from './language.ts'

export function LanguageMenu() {
  const { t, language, setLanguage } = useTranslation()
  return (
    <Menu position="bottom-end" withinPortal={false} withInitialFocusPlaceholder={false}>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label={t('shell.language')}>
          <Icon name="globe" />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {Object.entries(languages).map(([tag, name]) => (
          <MenuChoice
            key={tag}
            lang={tag}
            label={name}
            isChosen={tag === language}
            onChoose={() => isLanguage(tag) && setLanguage(tag)}
          />
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}
