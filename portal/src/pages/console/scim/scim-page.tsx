import { UnstyledButton } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import * as consoleRoutes from '#features/portal/contract/console-routes.ts'
import type { ScimCall } from '#features/scim/contract/journal.ts'
import { consolePath } from '../../../api/console.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import { callOutcome, callTones } from '../../../components/call-outcome.ts'
import { CallDetails, errorOf } from '../../../components/scim-call-details.tsx'
import { ConsoleList } from '../console-list.tsx'
import { ConsolePage } from '../console-page.tsx'
import { FilterForm, filled } from '../filter-form.tsx'

const route = getRouteApi('/console/scim')
const pollMillis = 30_000

/** The calls of SCIM clients, and why they failed. */
export function ScimPage() {
  const { t, exactTime, number } = useTranslation()
  const filter = route.useSearch()
  const navigate = route.useNavigate()
  const [opened, setOpened] = useState<ScimCall>()
  const any = { value: '', label: t('console.any') }
  const periods = [any, ...periodsOf(t), ...writtenPeriod(filter.since)]
  return (
    <ConsolePage title={t('dashboard.journal')} intro={t('scim.intro')}>
      <ConsoleList<ScimCall>
        label={t('dashboard.journal')}
        path={consolePath(consoleRoutes.getScimJournal)}
        name="entries"
        filter={filter}
        empty={t(Object.values(filter).some((value) => value !== undefined) ? 'scim.none' : 'scim.noneYet')}
        everyMillis={pollMillis}
        columns={[
          {
            key: 'time',
            name: t('dashboard.time'),
            width: 10,
            cell: (call) => (
              <UnstyledButton className="table-open" onClick={() => setOpened(call)}>
                {exactTime(call.time)}
              </UnstyledButton>
            ),
          },
          { key: 'gateway', name: t('dashboard.gateway'), width: 8, cell: ({ gateway }) => isolated(gateway) },
          {
            key: 'status',
            name: t('dashboard.status'),
            width: 5,
            cell: (call) => <span className={callTones[callOutcome(call)]}>{call.status}</span>,
          },
          {
            key: 'method',
            name: t('dashboard.method'),
            width: 6,
            // A dry run changed nothing, whatever its method.
            cell: ({ method, dryRun }) => (dryRun === undefined ? method : `${method} · ${t('dashboard.dryRun')}`),
          },
          { key: 'path', name: t('dashboard.path'), width: 13, cell: ({ path }) => isolated(path) },
          { key: 'caller', name: t('dashboard.client'), width: 8, cell: ({ caller }) => isolated(caller) },
          { key: 'error', name: t('dashboard.error'), width: 12, cell: (call) => isolated(errorOf(call)) },
          {
            key: 'millis',
            name: t('dashboard.millis'),
            width: 5,
            alignEnd: true,
            cell: ({ millis }) => number(millis),
          },
        ]}
      >
        <FilterForm
          fields={[
            { name: 'gateway', label: t('dashboard.gateway') },
            { name: 'status', label: t('dashboard.status') },
            {
              name: 'failed',
              label: t('scim.outcome'),
              options: [any, { value: 'true', label: t('dashboard.failedOnly') }],
            },
            { name: 'since', label: t('dashboard.period'), options: periods },
          ]}
          values={filter}
          onApply={(next) => void navigate({ search: filled(next) })}
        />
      </ConsoleList>
      {opened !== undefined && <CallDetails call={opened} onClose={() => setOpened(undefined)} />}
    </ConsolePage>
  )
}

const periodsOf = (t: ReturnType<typeof useTranslation>['t']) => [
  { value: '24h', label: t('dashboard.day') },
  { value: '7d', label: t('dashboard.week') },
  { value: '30d', label: t('dashboard.month') },
]

/** Another period in the address is shown as it is written. */
const writtenPeriod = (since: string | undefined) =>
  since === undefined || ['24h', '7d', '30d'].includes(since) ? [] : [{ value: since, label: since }]
