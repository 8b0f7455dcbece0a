import { Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ApiEntry } from '#features/portal/contract/main-apis.ts'
import { apisQuery } from '../../api/apis.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { isolated } from '../../app/isolated.ts'
import { Answer } from '../../components/answer.tsx'
import { Icon } from '../../components/icon.tsx'
import { Page } from '../../components/page.tsx'
import { Empty } from '../../components/states.tsx'
import './apis.css'

/** The APIs of this installation that the user may know of. */
export function ApisPage() {
  const { t } = useTranslation()
  const apis = useQuery(apisQuery)
  return (
    <Page title={t('page.apis')} intro={t('apis.intro')}>
      <Answer query={apis} shape="cards">
        {({ apis: found }) =>
          found.length === 0 ? (
            <Empty icon="code" title={t('apis.none')} text={t('apis.noneText')} />
          ) : (
            <ul className="bare-list api-cards">
              {found.map((api) => (
                <ApiCard key={api.name} api={api} />
              ))}
            </ul>
          )
        }
      </Answer>
    </Page>
  )
}

function ApiCard({ api: { name, title, application, addresses } }: { readonly api: ApiEntry }) {
  const { t } = useTranslation()
  return (
    <li className="card">
      <Link to="/apis/$name" params={{ name }} className="card-link">
        <Icon name="code" />
        <Stack gap={0} miw={0}>
          <Text fw={600} lang="en">
            {isolated(title)}
          </Text>
          {addresses.map((address) => (
            <Text key={address} size="sm">
              {isolated(address)}
            </Text>
          ))}
          <Text size="sm" c="dimmed">
            {t('apis.ofApplication', { application })}
          </Text>
        </Stack>
      </Link>
    </li>
  )
}
