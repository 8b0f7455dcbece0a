import { Button, Group, Text } from '@mantine/core'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useState } from 'react'
import * as consoleRoutes from '#features/portal/contract/console-routes.ts'
import type { ScimTenantView } from '#features/portal/contract/console-tokens.ts'
import { consolePath } from '../../../api/console.ts'
import { useConfig } from '../../../app/config.tsx'
import { useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import { CopyButton } from '../../../components/copy-button.tsx'
import { Icon } from '../../../components/icon.tsx'
import { ConsoleList } from '../console-list.tsx'
import { ConsolePage } from '../console-page.tsx'
import { FilterForm, filled } from '../filter-form.tsx'
import { ClientTokens } from './client-tokens.tsx'
import { NewTenantDialog } from './new-tenant-dialog.tsx'
import { TenantStatus } from './tenant-status.tsx'

const route = getRouteApi('/console/scim-clients')
/** A tenant that was added is served within seconds. */
const pollMillis = 5_000

/** The SCIM tenants that operators have added, and the tokens of all SCIM clients. */
export function ScimClientsPage() {
  const { t } = useTranslation()
  const { operator } = useConfig()
  const { q } = route.useSearch()
  const navigate = route.useNavigate()
  const [isAdding, setAdding] = useState(false)
  return (
    <ConsolePage
      title={t('page.scimClients')}
      intro={t('tenants.intro')}
      actions={
        operator && (
          <Button leftSection={<Icon name="plus" size={18} />} onClick={() => setAdding(true)}>
            {t('tenants.add')}
          </Button>
        )
      }
    >
      <ConsoleList<ScimTenantView>
        label={t('tenants.title')}
        path={consolePath(consoleRoutes.listScimTenants)}
        name="tenants"
        filter={{ q }}
        empty={t(q === undefined ? 'tenants.noneYet' : 'tenants.none')}
        everyMillis={pollMillis}
        columns={[
          {
            key: 'name',
            name: t('tenants.name'),
            width: 8,
            cell: ({ name }) => (
              <Link className="text-link" to="/console/scim-clients/$name" params={{ name }}>
                {isolated(name)}
              </Link>
            ),
          },
          {
            key: 'address',
            name: t('tenants.address'),
            width: 20,
            cell: ({ name, address }) => (
              <Group gap="xs">
                <Text size="sm">{isolated(address)}</Text>
                <CopyButton value={address} label={t('tenants.addressOf', { name })} />
              </Group>
            ),
          },
          { key: 'state', name: t('dashboard.status'), width: 8, cell: (tenant) => <TenantStatus tenant={tenant} /> },
        ]}
      >
        <FilterForm
          fields={[{ name: 'q', label: t('tenants.search') }]}
          values={{ q }}
          onApply={(next) => void navigate({ search: filled(next), replace: true })}
        />
      </ConsoleList>
      <ClientTokens />
      {isAdding && <NewTenantDialog onClose={() => setAdding(false)} />}
    </ConsolePage>
  )
}
