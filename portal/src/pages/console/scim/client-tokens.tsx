import { Button, Group, Table, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { ScimTokenView } from '#features/portal/contract/console-tokens.ts'
import { revokeToken, tokensQuery } from '../../../api/scim-clients.ts'
import { useConfig } from '../../../app/config.tsx'
import { useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import { Answer } from '../../../components/answer.tsx'
import type { IconName } from '../../../components/icon.tsx'
import { Icon } from '../../../components/icon.tsx'
import { useLive } from '../../../components/live.ts'
import { ReasonDialog } from '../../../components/reason-dialog.tsx'
import { Status, type Tone } from '../../../components/status.tsx'
import { Section } from '../section.tsx'
import { NewTokenDialog } from './new-token-dialog.tsx'

const pollMillis = 30_000

const looks = {
  valid: ['good', 'check', 'scim.valid'],
  expiring: ['waiting', 'clock', 'scim.expiring'],
  expired: ['bad', 'warning', 'scim.expired'],
  revoked: ['plain', 'close', 'scim.revoked'],
} as const satisfies Record<ScimTokenView['state'], readonly [Tone, IconName, string]>

/** The tokens of a SCIM client, or of all, with their expiry and last use. */
export function ClientTokens({ client }: { readonly client?: string }) {
  const { t } = useTranslation()
  const { operator } = useConfig()
  const query = useQuery({ ...tokensQuery(client), refetchInterval: useLive(pollMillis) })
  const [isCreating, setCreating] = useState(false)
  const [revoking, setRevoking] = useState<ScimTokenView>()
  return (
    <Section title={t(client === undefined ? 'scim.tokens' : 'scim.ownTokens')}>
      <Text c="dimmed">{t('scim.tokensHint')}</Text>
      {operator && client !== undefined && (
        <Group>
          <Button variant="default" leftSection={<Icon name="plus" size={18} />} onClick={() => setCreating(true)}>
            {t('scim.create')}
          </Button>
        </Group>
      )}
      <Answer query={query} rows={2}>
        {({ tokens }) =>
          tokens.length === 0 ? (
            <Text c="dimmed">{t('scim.noTokens')}</Text>
          ) : (
            <TokenTable tokens={tokens} {...(operator ? { onRevoke: setRevoking } : {})} />
          )
        }
      </Answer>
      {isCreating && client !== undefined && <NewTokenDialog client={client} onClose={() => setCreating(false)} />}
      {revoking !== undefined && (
        <ReasonDialog
          title={t('scim.revoke')}
          text={t('scim.revokeText', { name: revoking.name, client: revoking.client })}
          isHarmful
          send={(reason) => revokeToken(revoking.id, reason)}
          done={({ name }) => t('scim.revokedOne', { name })}
          onClose={() => setRevoking(undefined)}
        />
      )}
    </Section>
  )
}

interface TokenTableProps {
  readonly tokens: readonly ScimTokenView[]
  /** Absent if the user can't revoke tokens. */
  readonly onRevoke?: (token: ScimTokenView) => void
}

function TokenTable({ tokens, onRevoke }: TokenTableProps) {
  const { t, dateTime } = useTranslation()
  const time = (at: string | undefined) => (at === undefined ? t('tokens.never') : dateTime(at))
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so keys have to reach it
    <section className="task-scroll" tabIndex={0} aria-label={t('scim.tokens')}>
      <Table aria-label={t('scim.tokens')} miw={700}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col">{t('dashboard.client')}</Table.Th>
            <Table.Th scope="col">{t('scim.token')}</Table.Th>
            <Table.Th scope="col">{t('dashboard.status')}</Table.Th>
            <Table.Th scope="col">{t('scim.expires')}</Table.Th>
            <Table.Th scope="col">{t('scim.lastUsed')}</Table.Th>
            <Table.Th scope="col">{t('tokens.created')}</Table.Th>
            {onRevoke !== undefined && <Table.Th scope="col">{t('links.change')}</Table.Th>}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {tokens.map((token) => {
            const { id, client, name, state, created, expires, lastUsed } = token
            const [tone, icon, text] = looks[state]
            const isUsable = state === 'valid' || state === 'expiring'
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
                {onRevoke !== undefined && (
                  <Table.Td>
                    {isUsable && (
                      <Button
                        variant="default"
                        size="xs"
                        aria-label={t('scim.revokeOf', { name, client })}
                        onClick={() => onRevoke(token)}
                      >
                        {t('scim.revoke')}
                      </Button>
                    )}
                  </Table.Td>
                )}
              </Table.Tr>
            )
          })}
        </Table.Tbody>
      </Table>
    </section>
  )
}
