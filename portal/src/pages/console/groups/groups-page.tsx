import { useDebouncedValue } from '@mantine/hooks'
import { getRouteApi } from '@tanstack/react-router'
import type { ConsoleGroup } from '#features/portal/contract/console-people.ts'
import * as consoleRoutes from '#features/portal/contract/console-routes.ts'
import { consolePath } from '../../../api/console.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import { SearchBox } from '../../../components/search-box.tsx'
import { ConsoleList } from '../console-list.tsx'
import { ConsolePage } from '../console-page.tsx'
import { EntryLink } from '../entry-link.tsx'

const route = getRouteApi('/console/groups')

/** The directory is not searched for every letter. */
const typingMillis = 250

/** The groups of the directory. */
export function GroupsPage() {
  const { t } = useTranslation()
  const { q = '' } = route.useSearch()
  const navigate = route.useNavigate()
  const [searched] = useDebouncedValue(q, typingMillis)
  return (
    <ConsolePage title={t('page.groups')} intro={t('groups.intro')}>
      <ConsoleList<ConsoleGroup>
        label={t('page.groups')}
        path={consolePath(consoleRoutes.listGroups)}
        filter={{ q: searched }}
        empty={t('groups.none')}
        columns={[
          {
            key: 'name',
            name: t('users.name'),
            width: 12,
            cell: ({ id, name }) => <EntryLink to="/console/groups/$id" id={id} name={name} />,
          },
          {
            key: 'description',
            name: t('groups.description'),
            width: 16,
            cell: ({ description = '' }) => isolated(description),
          },
          { key: 'dn', name: 'DN', width: 16, cell: ({ dn }) => isolated(dn) },
        ]}
      >
        <SearchBox
          label={t('groups.search')}
          value={q}
          onChange={(next) => void navigate({ search: next === '' ? {} : { q: next }, replace: true })}
        />
      </ConsoleList>
    </ConsolePage>
  )
}
