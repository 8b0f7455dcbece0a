import { Anchor, Stack, Text } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { AuditEntryView } from '#features/portal/contract/console-audit.ts'
import type { ConsoleGroup } from '#features/portal/contract/console-people.ts'
import * as consoleRoutes from '#features/portal/contract/console-routes.ts'
import type { AdminRun } from '#features/portal/contract/main-admin.ts'
import { consolePath } from '../../../api/console.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import { PersonName } from '../../../components/person-names.tsx'
import { changeText } from '../audit/change-text.ts'
import { reasonText } from '../audit/reason-text.ts'
import { ConsoleList } from '../console-list.tsx'
import { EntryLink } from '../entry-link.tsx'
import { useRunColumns } from '../runs/runs-page.tsx'

/** The groups of a user. */
export function PersonGroups({ id }: { readonly id: string }) {
  const { t } = useTranslation()
  return (
    <ConsoleList<ConsoleGroup>
      label={t('page.groups')}
      path={consolePath(consoleRoutes.listGroupsOfPerson, { id })}
      name="groups"
      filter={{}}
      empty={t('users.noGroups')}
      columns={[
        {
          key: 'name',
          name: t('users.name'),
          width: 14,
          cell: (group) => <EntryLink to="/console/groups/$id" id={group.id} name={group.name} />,
        },
        {
          key: 'description',
          name: t('groups.description'),
          width: 20,
          cell: ({ description = '' }) => isolated(description),
        },
      ]}
    />
  )
}

/** The stored runs about a user. */
export function PersonRuns({ id }: { readonly id: string }) {
  const { t } = useTranslation()
  const columns = useRunColumns().filter(({ key }) => key !== 'subject')
  return (
    <ConsoleList<AdminRun>
      label={t('page.runs')}
      path={consolePath(consoleRoutes.listRunsOfPerson, { id })}
      name="runs"
      filter={{}}
      everyMillis={10_000}
      empty={t('runs.none')}
      columns={[
        ...columns,
        { key: 'reason', name: t('dashboard.reason'), width: 12, cell: ({ reason = '' }) => isolated(reason) },
      ]}
    />
  )
}

/** The audit entries about a user, which have no identities. */
export function PersonAudit({ login }: { readonly login: string }) {
  const { t, exactTime } = useTranslation()
  return (
    <Stack gap="sm">
      <Text c="dimmed">
        {t('users.auditText', { login })}{' '}
        <Anchor
          inherit
          underline="always"
          renderRoot={(props) => <Link to="/console/audit" search={{ subject: login }} {...props} />}
        >
          {t('audit.title')}
        </Anchor>
      </Text>
      <ConsoleList<AuditEntryView>
        label={t('audit.title')}
        path={consolePath(consoleRoutes.listAudit)}
        filter={{ subject: login }}
        empty={t('audit.none')}
        columns={[
          { key: 'time', name: t('dashboard.time'), width: 10, cell: ({ time }) => exactTime(time) },
          { key: 'change', name: t('audit.change'), width: 16, cell: (entry) => isolated(changeText(entry, t)) },
          {
            key: 'requestor',
            name: t('audit.requestor'),
            width: 9,
            cell: ({ requestor }) => <PersonName login={requestor} />,
          },
          { key: 'target', name: t('audit.target'), width: 8, cell: ({ target }) => isolated(target) },
          {
            key: 'reason',
            name: t('dashboard.reason'),
            width: 12,
            cell: ({ reason = '' }) => isolated(reasonText(reason)),
          },
        ]}
      />
    </Stack>
  )
}
