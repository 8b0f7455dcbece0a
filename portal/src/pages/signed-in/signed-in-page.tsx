import { useEffect } from 'react'
import { useTranslation } from '../../app/i18n.tsx'
import { announceSignIn } from '../../app/session-channel.ts'
import { Page } from '../../components/page.tsx'
import { Empty } from '../../components/states.tsx'

/** The page after signing in again for another tab. */
export function SignedInPage() {
  const { t } = useTranslation()
  useEffect(announceSignIn, [])
  return (
    <Page title={t('signedIn.title')}>
      <Empty icon="check" title={t('signedIn.title')} text={t('signedIn.text')} />
    </Page>
  )
}
