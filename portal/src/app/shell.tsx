import { ActionIcon, Alert, AppShell, Burger, Button, Group, Kbd, Text, Title } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useIsFetching } from '@tanstack/react-query'
import { Outlet, useLocation, useRouterState } from '@tanstack/react-router'
import { useEffect } from 'react'
import { saveMailLanguage } from '../api/notifications.ts'
import { Icon } from '../components/icon.tsx'
import { useOnline } from '../components/online.ts'
import { useConfig } from './config.tsx'
import { useTranslation } from './i18n.tsx'
import { useKeptFocus } from './kept-focus.ts'
import { LanguageMenu } from './language-menu.tsx'
import { useLiveChanges } from './live-changes.ts'
import { Navigation } from './navigation.tsx'
import { NotificationBell } from './notification-bell.tsx'
import { useOverlays } from './overlays.tsx'
import { PersonMenu } from './person-menu.tsx'
import { settings } from './settings.ts'
import { paletteKey } from './shortcuts.ts'
import { ThemeMenu } from './theme-menu.tsx'

/** The frame around every page. */
export function Shell() {
  const { t } = useTranslation()
  const { headerTitle } = useConfig()
  const [isOpen, { toggle, close }] = useDisclosure(false)
  const { pathname } = useLocation()
  const { open, overlay } = useOverlays()
  useKeptFocus()
  useLiveChanges()
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
            {settings.logo !== undefined && <img className="logo" src={settings.logo} alt="" />}
            <Title order={2} size="h4" component="p" lineClamp={1}>
              {headerTitle}
            </Title>
          </Group>
          <Group gap={4} wrap="nowrap">
            <SearchButton onOpen={() => open('palette')} />
            <NotificationBell />
            <LanguageMenu onChosen={saveMailLanguage} />
            <ThemeMenu />
            <PersonMenu onShortcuts={() => open('help')} />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" aria-label={t('shell.navigation')} mod={{ closed: !isOpen }}>
        <Navigation />
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1}>
        <Progress />
        <OfflineNotice />
        <Outlet />
      </AppShell.Main>
      {overlay}
    </AppShell>
  )
}

/** Shows that content is on its way, if it takes long. What is loaded again in the background does not count. */
function Progress() {
  const { t } = useTranslation()
  const loading = useIsFetching({ predicate: ({ state }) => state.data === undefined })
  const isOpening = useRouterState({ select: ({ status }) => status === 'pending' })
  if (loading === 0 && !isOpening) return null
  return <div className="progress" role="progressbar" aria-label={t('state.loading')} />
}

/** Opens the palette; on phones only an icon. */
function SearchButton({ onOpen }: { readonly onOpen: () => void }) {
  const { t } = useTranslation()
  const shared = { onClick: onOpen, 'aria-keyshortcuts': 'Control+K Meta+K' }
  return (
    <>
      <Button
        {...shared}
        visibleFrom="sm"
        variant="default"
        leftSection={<Icon name="search" size={16} />}
        rightSection={
          <Kbd size="xs" aria-hidden="true">
            {paletteKey(navigator.platform)}
          </Kbd>
        }
        className="search-button"
      >
        {t('palette.open')}
      </Button>
      <ActionIcon {...shared} aria-label={t('palette.title')} hiddenFrom="sm" variant="subtle" color="gray" size="lg">
        <Icon name="search" />
      </ActionIcon>
    </>
  )
}

function OfflineNotice() {
  const { t } = useTranslation()
  if (useOnline()) return null
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
