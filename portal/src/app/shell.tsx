import { Alert, AppShell, Burger, Group, Text, Title } from '@mantine/core'
import { useDisclosure, useNetwork } from '@mantine/hooks'
import { Outlet, useLocation } from '@tanstack/react-router'
import { useEffect } from 'react'
import { Icon } from '../components/icon.tsx'
import { useConfig } from './config.tsx'
import { useTranslation } from './i18n.tsx'
import { useKeptFocus } from './kept-focus.ts'
import { LanguageMenu } from './language-menu.tsx'
import { Navigation } from './navigation.tsx'
import { PersonMenu } from './person-menu.tsx'
import { ThemeMenu } from './theme-menu.tsx'

/** The frame around every page. */
export function Shell() {
  const { t } = useTranslation()
  const { headerTitle } = useConfig()
  const [isOpen, { toggle, close }] = useDisclosure(false)
  const { pathname } = useLocation()
  useKeptFocus()
  // biome-ignore lint/correctness/useExhaustiveDependencies: on phones the menu is in the way of the page it led to
  useEffect(close, [pathname])
  return (
    <AppShell
      header={{ height: 56 }}
      navbar={{ width: 232, breakpoint: 'sm', collapsed: { mobile: !isOpen } }}
      padding={{ base: 'sm', sm: 'lg' }}
    >
      <a href="#content" className="skip-link">
        {t('shell.skip')}
      </a>
      <AppShell.Header>
        <Group h="100%" px="md" justify="space-between" wrap="nowrap" gap="xs">
          <Group gap="sm" wrap="nowrap" miw={0}>
            <Burger
              opened={isOpen}
              onClick={toggle}
              hiddenFrom="sm"
              size="sm"
              aria-label={t('shell.menu')}
              aria-expanded={isOpen}
            />
            <Title order={2} size="h4" component="p" lineClamp={1}>
              {headerTitle}
            </Title>
          </Group>
          <Group gap={4} wrap="nowrap">
            <LanguageMenu />
            <ThemeMenu />
            <PersonMenu />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" aria-label={t('shell.navigation')} mod={{ closed: !isOpen }}>
        <Navigation />
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1}>
        <OfflineNotice />
        <Outlet />
      </AppShell.Main>
    </AppShell>
  )
}

function OfflineNotice() {
  const { t } = useTranslation()
  const { online } = useNetwork()
  if (online) return null
  return (
    <Alert
      color="yellow"
      variant="outline"
      icon={<Icon name="offline" />}
      title={t('offline.title')}
      mb="md"
      role="status"
    >
      <Text size="sm">{t('offline.text')}</Text>
    </Alert>
  )
}
