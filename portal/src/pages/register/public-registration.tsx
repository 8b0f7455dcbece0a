import { Container, Group, Stack, Text, Title } from '@mantine/core'
import { type UseQueryResult, useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import type { RegisterConfig } from '#features/registration/contract/register.ts'
import { registerConfigQuery } from '../../api/register.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { LanguageMenu } from '../../app/language-menu.tsx'
import { settings } from '../../app/settings.ts'
import { portalColors } from '../../app/theme.ts'
import { ThemeMenu } from '../../app/theme-menu.tsx'
import { Themed } from '../../app/themed.tsx'
import { Answer } from '../../components/answer.tsx'
import { NoticeProvider } from '../../components/notices.tsx'
import { RegisterView } from './register-view.tsx'

/** The form for an anonymous user: the only page at a mount without the Main API. */
export function PublicRegistration() {
  const config = useQuery(registerConfigQuery)
  return (
    <Themed colors={config.data ?? portalColors}>
      <NoticeProvider>
        <Registration config={config} />
      </NoticeProvider>
    </Themed>
  )
}

function Registration({ config }: { readonly config: UseQueryResult<RegisterConfig, Error> }) {
  const { t } = useTranslation()
  const { headerTitle = '', frontPage } = config.data ?? {}
  const title = frontPage?.title || t('page.register')
  useEffect(() => {
    document.title = headerTitle === '' ? title : `${title} – ${headerTitle}`
  }, [title, headerTitle])
  const token = new URLSearchParams(window.location.search).get('invitation') ?? ''
  return (
    <Container size="md" py="md">
      <Group component="header" justify="space-between" mb="xl" wrap="nowrap">
        <Group gap="sm" wrap="nowrap" miw={0}>
          {settings.logo !== undefined && <img className="logo" src={settings.logo} alt="" />}
          <Text fw={700} size="lg">
            {headerTitle}
          </Text>
        </Group>
        <Group gap={4} wrap="nowrap">
          <LanguageMenu />
          <ThemeMenu />
        </Group>
      </Group>
      <Stack component="main" gap="lg">
        <div>
          <Title order={1} size="h2">
            {title}
          </Title>
          {frontPage !== undefined && frontPage.text !== '' && <Text c="dimmed">{frontPage.text}</Text>}
        </div>
        <Answer query={config} rows={6}>
          {(known) => <RegisterView config={known} owner="" token={token} />}
        </Answer>
      </Stack>
    </Container>
  )
}
