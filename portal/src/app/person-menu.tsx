import { Avatar, Menu, Text, UnstyledButton } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { Icon } from '../components/icon.tsx'
import { useConfig, usePerson } from './config.tsx'
import { useTranslation } from './i18n.tsx'
import { isolated } from './isolated.ts'
import { shownPages } from './pages.ts'
import { settings } from './settings.ts'

export function PersonMenu({ onShortcuts }: { readonly onShortcuts: () => void }) {
  const { t } = useTranslation()
  const config = useConfig()
  const { login, displayName } = usePerson()
  const pages = shownPages(config, settings.apis)
  const hasProfile = pages.some(({ id }) => id === 'user')
  return (
    <Menu position="bottom-end" withinPortal={false} withInitialFocusPlaceholder={false}>
      <Menu.Target>
        <UnstyledButton aria-label={t('shell.person', { name: displayName })}>
          <Avatar size={34} radius="xl" color="secondary" variant="light" alt="" aria-hidden="true">
            {displayName.slice(0, 1).toUpperCase()}
          </Avatar>
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          <Text size="sm" fw={600} c="var(--mantine-color-text)">
            {isolated(displayName)}
          </Text>
          <Text size="xs">{isolated(login)}</Text>
        </Menu.Label>
        {hasProfile && (
          <Menu.Item
            renderRoot={(props) => <Link to="/profile" {...props} />}
            leftSection={<Icon name="person" size={16} />}
          >
            {t('page.profile')}
          </Menu.Item>
        )}
        <Menu.Item onClick={onShortcuts} leftSection={<Icon name="keyboard" size={16} />}>
          {t('shortcuts.title')}
        </Menu.Item>
        {pages
          .filter(({ place }) => place === 'person menu')
          .map(({ to, title, icon }) => (
            <Menu.Item
              key={to}
              renderRoot={(props) => <Link to={to} {...props} />}
              leftSection={<Icon name={icon} size={16} />}
            >
              {t(title)}
            </Menu.Item>
          ))}
        <Menu.Item component="a" href={config.logoutURL} leftSection={<Icon name="exit" size={16} />}>
          {t('shell.signOut')}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}
