import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { registerConfigQuery } from '../../api/register.ts'
import { usePerson } from '../../app/config.tsx'
import { useTranslation } from '../../app/i18n.tsx'
import { Answer } from '../../components/answer.tsx'
import { Page } from '../../components/page.tsx'
import { RegisterView } from './register-view.tsx'

const route = getRouteApi('/register')

/** The form for a signed-in user. */
export function RegisterPage() {
  const { t } = useTranslation()
  const { login } = usePerson()
  const { invitation = '' } = route.useSearch()
  const config = useQuery(registerConfigQuery)
  const page = config.data?.frontPage
  return (
    <Page title={page?.title || t('page.register')} {...(page === undefined ? {} : { intro: page.text })}>
      <Answer query={config} rows={6}>
        {(known) => <RegisterView config={known} owner={login} token={invitation} />}
      </Answer>
    </Page>
  )
}
