import { Stack } from '@mantine/core'
import { useTranslation } from '../../app/i18n.tsx'
import { Page } from '../../components/page.tsx'
import { Factors } from './factors.tsx'
import { Password } from './password.tsx'
import { Sessions } from './sessions.tsx'
import { StepUpProvider } from './step-up.tsx'

export function SecurityPage() {
  const { t } = useTranslation()
  return (
    <Page title={t('page.security')} intro={t('security.intro')}>
      <StepUpProvider>
        <Stack gap="xl">
          <Password />
          <Factors />
          <Sessions />
        </Stack>
      </StepUpProvider>
    </Page>
  )
}
