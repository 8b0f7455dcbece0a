import { useDebouncedValue } from '@mantine/hooks'
import { getRouteApi } from '@tanstack/react-router'
import type { ConsolePerson } from '#features/portal/contract/console-people.ts'
import * as consoleRoutes from '#features/portal/contract/console-routes.ts'
import { consolePath } from '../../../api/console.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import { SearchBox } from '../../../components/search-box.tsx'
import { ConsoleList } from '../console-list.tsx'
import { ConsolePage } from '../console-page.tsx'
import { EntryLink } from '../entry-link.tsx'
import { PersonState } from './person-state.tsx'

const route = getRouteApi('/console/people')

/** The directory is not searched for every letter. */
const typingMillis = 250

/** The users of the directory. */
export function PeoplePage() {
  const { t } = useTranslation()
  const { q = '' } = route.useSearch()
  const navigate = route.useNavigate()
  const [searched] = useDebouncedValue(q, typingMillis)
  return (
    <ConsolePage title={t('page.users')} intro={t('users.intro')}>
      <ConsoleList<ConsolePerson>
        label={t('page.users')}
        path={consolePath(consoleRoutes.listPeople)}
        filter={{ q: searched }}
        empty={t('people.none')}
        columns={[
          {
            key: 'name',
            name: t('users.name'),
            width: 14,
            cell: ({ id, login, displayName }) => (
              <EntryLink to="/console/people/$id" id={id} name={displayName ?? login} />
            ),
          },
          { key: 'login', name: t('users.login'), width: 10, cell: ({ login }) => isolated(login) },
          { key: 'mail', name: t('users.mail'), width: 14, cell: ({ mail = '' }) => isolated(mail) },
          { key: 'state', name: t('users.state'), width: 8, cell: (person) => <PersonState person={person} /> },
        ]}
      >
        <SearchBox
          label={t('users.search')}
          value={q}
          onChange={(next) => void navigate({ search: next === '' ? {} : { q: next }, replace: true })}
        />
      </ConsoleList>
    </ConsolePage>
  )
}
