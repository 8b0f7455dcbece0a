import { Anchor, Group, Stack, Switch, Text, Title, UnstyledButton } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import type { ScimCall } from '#features/scim/contract/journal.ts'
import { journalQuery } from '../../api/admin.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { isolated } from '../../app/isolated.ts'
import { callOutcome, callTones } from '../../components/call-outcome.ts'
import { useNextPage } from '../../components/next-page.ts'
import { CallDetails, errorOf } from '../../components/scim-call-details.tsx'
import { Failure, Loading } from '../../components/states.tsx'
import { VirtualTable } from '../../components/virtual-table.tsx'
import type { Period } from './periods.ts'

/** The latest calls of SCIM clients, and why they failed. */
export function Journal({ period }: { readonly period: Period }) {
  const { t, exactTime, number } = useTranslation()
  const [failed, setFailed] = useState(false)
  const [opened, setOpened] = useState<ScimCall>()
  const journal = useInfiniteQuery(journalQuery({ failed, since: period }))
  const calls = journal.data?.pages.flatMap(({ entries }) => entries)
  const more = useNextPage(journal)
  const cells: readonly ((call: ScimCall) => ReactNode)[] = [
    (call) => (
      <UnstyledButton className="table-open" onClick={() => setOpened(call)}>
        {exactTime(call.time)}
      </UnstyledButton>
    ),
    (call) => <span className={callTones[callOutcome(call)]}>{call.status}</span>,
    ({ method }) => method,
    ({ path }) => isolated(path),
    ({ caller }) => isolated(caller),
    (call) => isolated(errorOf(call)),
    ({ millis }) => number(millis),
  ]
  return (
    <Stack component="section" aria-label={t('dashboard.journal')} gap="sm">
      <Group justify="space-between">
        <Title order={2} size="h4">
          {t('dashboard.journal')}
        </Title>
        <Group gap="md">
          <Anchor
            renderRoot={(props) => (
              <Link to="/console/scim" search={{ since: period, ...(failed ? { failed: 'true' } : {}) }} {...props} />
            )}
          >
            {t('scim.all')}
          </Anchor>
          <Switch
            label={t('dashboard.failedOnly')}
            checked={failed}
            onChange={(event) => setFailed(event.currentTarget.checked)}
          />
        </Group>
      </Group>
      {calls === undefined ? (
        journal.error === null ? (
          <Loading rows={3} />
        ) : (
          <Failure error={journal.error} onRetry={() => void journal.refetch()} />
        )
      ) : calls.length === 0 ? (
        <Text c="dimmed">{t('dashboard.noCalls')}</Text>
      ) : (
        <VirtualTable
          label={t('dashboard.journal')}
          columns={[
            { key: 'time', name: t('dashboard.time'), width: 10 },
            { key: 'status', name: t('dashboard.status'), width: 5 },
            { key: 'method', name: t('dashboard.method'), width: 6 },
            { key: 'path', name: t('dashboard.path'), width: 13 },
            { key: 'caller', name: t('dashboard.client'), width: 8 },
            { key: 'error', name: t('dashboard.error'), width: 11 },
            { key: 'millis', name: t('dashboard.millis'), width: 5, alignEnd: true },
          ]}
          count={calls.length}
          cell={(row, column) => {
            const call = calls[row]
            return call === undefined ? '' : cells[column]?.(call)
          }}
          onEnd={more}
        />
      )}
      {journal.isFetchNextPageError && <Failure error={journal.error} onRetry={() => void journal.fetchNextPage()} />}
      {opened !== undefined && <CallDetails call={opened} onClose={() => setOpened(undefined)} />}
    </Stack>
  )
}
