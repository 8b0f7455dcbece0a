import { ActionIcon, Menu } from '@mantine/core'
import { isLanguage, type Language, languages } from '#sdk/page/languages.ts'
import { Icon } from '../components/icon.tsx'
import { MenuChoice } from '../components/menu-choice.tsx'
import { useSay } from '../components/notices.tsx'
import { useFailureText } from '../components/states.tsx'
import { useTranslation } from './i18n.tsx'
import { queryClient } from './query-client.ts'

/** `onChosen` runs after the page is in the chosen language. */
export function LanguageMenu({ onChosen }: { readonly onChosen?: (language: Language) => Promise<unknown> }) {
  const { t, language, setLanguage } = useTranslation()
  const say = useSay()
  const failureText = useFailureText()
  const choose = (tag: string): void => {
    if (!isLanguage(tag)) return
    // Labels and other texts of the configuration are in the answers of the gateway.
    const reload = (): Promise<void> => queryClient.invalidateQueries()
    setLanguage(tag)
      .then(() => onChosen?.(tag))
      .then(reload)
      .catch((error: Error) => say(failureText(error), 'bad'))
  }
  return (
    <Menu position="bottom-end" withinPortal={false} withInitialFocusPlaceholder={false}>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label={t('shell.language')}>
          <Icon name="globe" />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {Object.entries(languages).map(([tag, name]) => (
          <MenuChoice key={tag} lang={tag} label={name} isChosen={tag === language} onChoose={() => choose(tag)} />
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}
