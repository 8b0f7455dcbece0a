import { Stack, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import type { GroupMember } from '#features/portal/contract/console-people.ts'
import * as consoleRoutes from '#features/portal/contract/console-routes.ts'
import { consolePath } from '../../../api/console.ts'
import { groupQuery } from '../../../api/people.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import type { MessageKey } from '../../../app/messages.ts'
import { Answer } from '../../../components/answer.tsx'
import { ConsoleList } from '../console-list.tsx'
import { ConsolePage } from '../console-page.tsx'
import { EntryFacts } from '../entry-facts.tsx'
import { EntryLink } from '../entry-link.tsx'

const route = getRouteApi('/console/groups/$id')

/** One group: the entry and its direct members. */
export function GroupPage() {
  const { t } = useTranslation()
  const { id } = route.useParams()
  const group = useQuery(groupQuery(id))
  return (
    <ConsolePage title={group.data?.name ?? t('page.groups')}>
      <Answer query={group}>
        {(known) => (
          <Stack gap="xl">
            <EntryFacts {...known} />
            <Stack component="section" aria-label={t('groups.members')} gap="sm">
              <Title order={2} size="h4">
                {t('groups.members')}
              </Title>
              <Members id={known.id} />
            </Stack>
          </Stack>
        )}
      </Answer>
    </ConsolePage>
  )
}

const kinds: Readonly<Record<GroupMember['kind'], MessageKey>> = {
  user: 'groups.kindUser',
  group: 'groups.kindGroup',
  other: 'groups.kindOther',
}

function Members({ id }: { readonly id: string }) {
  const { t } = useTranslation()
  return (
    <ConsoleList<GroupMember>
      label={t('groups.members')}
      path={consolePath(consoleRoutes.listMembers, { id })}
      name="members"
      filter={{}}
      empty={t('groups.noMembers')}
      columns={[
        { key: 'name', name: t('users.name'), width: 14, cell: (member) => <MemberName member={member} /> },
        {
          key: 'login',
          name: t('users.login'),
          width: 10,
          cell: ({ kind, name }) => (kind === 'user' ? isolated(name) : ''),
        },
        { key: 'kind', name: t('groups.kind'), width: 8, cell: ({ kind }) => t(kinds[kind]) },
      ]}
    />
  )
}

function MemberName({ member: { kind, id, name, displayName } }: { readonly member: GroupMember }) {
  const shown = displayName ?? name
  if (id === undefined || kind === 'other') return isolated(shown)
  return <EntryLink to={kind === 'user' ? '/console/people/$id' : '/console/groups/$id'} id={id} name={shown} />
}
