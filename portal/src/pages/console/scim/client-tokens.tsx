import { Table, Text } from '@mantine/core'
import { queryOptions, useQuery } from '@tanstack/react-query'
import * as consoleRoutes from '#features/portal/contract/console-routes.ts'
import type { ScimTokensView, ScimTokenView } from '#features/portal/contract/console-tokens.ts'
import { call } from '../../../api/call.ts'
import { admin } from '../../../api/console.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import type { IconName } from '../../../components/icon.tsx'
import { useLive } from '../../../components/live.ts'
import { Failure } from '../../../components/states.tsx'
import { Status, type Tone } from '../../../components/status.tsx'
import { Section } from '../section.tsx'

const pollMillis = 60_000

const tokensQuery = queryOptions({
  queryKey: ['admin', 'scim-tokens'],
  queryFn: ({ signal }) => call<ScimTokensView>(admin(consoleRoutes.getScimTokens), { signal }),
})

const looks = {
  valid: ['good', 'check', 'scim.valid'],
  expiring: ['waiting', 'clock', 'scim.expiring'],
  expired: ['bad', 'warning', 'scim.expired'],
  revoked: ['plain', 'close', 'scim.revoked'],
} as const satisfies Record<ScimTokenView['state'], readonly [Tone, IconName, string]>

/** The tokens of SCIM clients, with their expiry and last use; nothing if there are none. */
export function ClientTokens() {
  const { t, dateTime } = useTranslation()
  const { data, error, refetch } = useQuery({ ...tokensQuery, refetchInterval: useLive(pollMillis) })
  if (data === undefined) return error === null ? null : <Failure error={error} onRetry={() => void refetch()} />
  if (data.tokens.length === 0) return null
  const time = (at: string | undefined) => (at === undefined ? t('tokens.never') : dateTime(at))
  return (
    <Section title={t('scim.tokens')}>
      <Text c="dimmed">{t('scim.tokensHint')}</Text>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so keys have to reach it */}
      <section className="task-scroll" tabIndex={0} aria-label={t('scim.tokens')}>
        <Table aria-label={t('scim.tokens')} miw={600}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col">{t('dashboard.client')}</Table.Th>
              <Table.Th scope="col">{t('scim.token')}</Table.Th>
              <Table.Th scope="col">{t('dashboard.status')}</Table.Th>
              <Table.Th scope="col">{t('scim.expires')}</Table.Th>
              <Table.Th scope="col">{t('scim.lastUsed')}</Table.Th>
              <Table.Th scope="col">{t('tokens.created')}</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {data.tokens.map(({ id, client, name, state, created, expires, lastUsed }) => {
              const [tone, icon, text] = looks[state]
              return (
                <Table.Tr key={id}>
                  <Table.Td>{isolated(client)}</Table.Td>
                  <Table.Td>{isolated(name)}</Table.Td>
                  <Table.Td>
                    <Status tone={tone} icon={icon} text={t(text)} />
                  </Table.Td>
                  <Table.Td>{time(expires)}</Table.Td>
                  <Table.Td>{time(lastUsed)}</Table.Td>
                  <Table.Td>{dateTime(created)}</Table.Td>
                </Table.Tr>
              )
            })}
          </Table.Tbody>
        </Table>
      </section>
    </Section>
  )
}
