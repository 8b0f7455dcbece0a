import { Alert, Button, Group, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { ScimTenantDetails } from '#features/portal/contract/console-tokens.ts'
import { changeTenant, removeTenant, tenantQuery } from '../../../api/scim-clients.ts'
import { useConfig } from '../../../app/config.tsx'
import { useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import { Answer } from '../../../components/answer.tsx'
import { CopyButton } from '../../../components/copy-button.tsx'
import { Facts } from '../../../components/facts.tsx'
import { Icon } from '../../../components/icon.tsx'
import { useLive } from '../../../components/live.ts'
import { ReasonDialog } from '../../../components/reason-dialog.tsx'
import { ConsolePage } from '../console-page.tsx'
import { Section } from '../section.tsx'
import { ClientTokens } from './client-tokens.tsx'
import { TenantStatus } from './tenant-status.tsx'

const route = getRouteApi('/console/scim-clients/$name')
const pollMillis = 5_000

const words = {
  disable: { title: 'tenants.disable', text: 'tenants.disableText', done: 'tenants.disableDone' },
  enable: { title: 'tenants.enable', text: 'tenants.enableText', done: 'tenants.enableDone' },
} as const

type Change = keyof typeof words | 'remove'

/** One SCIM tenant: its address, its state, and the tokens of its client. */
export function TenantPage() {
  const { t } = useTranslation()
  const { name } = route.useParams()
  const query = useQuery({ ...tenantQuery(name), refetchInterval: useLive(pollMillis) })
  return (
    <ConsolePage
      title={t('tenants.titleOf', { name })}
      actions={
        <Button
          variant="default"
          renderRoot={(props) => <Link to="/console/scim-clients" {...props} />}
          leftSection={<Icon name="back" size={18} />}
        >
          {t('page.scimClients')}
        </Button>
      }
    >
      <Answer query={query}>
        {(tenant) => (
          <>
            <TenantFacts tenant={tenant} />
            <ClientTokens client={name} />
          </>
        )}
      </Answer>
    </ConsolePage>
  )
}

function TenantFacts({ tenant }: { readonly tenant: ScimTenantDetails }) {
  const { t, tn, dateTime, number } = useTranslation()
  const { operator } = useConfig()
  const navigate = route.useNavigate()
  const [change, setChange] = useState<Change>()
  const { name, address, profile, problem, created, createdBy, disabled, disabledBy = '', users, groups } = tenant
  const isEmpty = users + groups === 0
  const close = () => setChange(undefined)
  return (
    <Section title={t('tenants.gateway')}>
      {problem !== undefined && (
        <Alert color="yellow" variant="outline" icon={<Icon name="warning" />} title={t('tenants.refused')}>
          {isolated(problem)}
        </Alert>
      )}
      <Facts
        facts={[
          {
            name: t('tenants.address'),
            value: (
              <Group gap="xs">
                <Text span>{isolated(address)}</Text>
                <CopyButton value={address} label={t('tenants.addressOf', { name })} />
              </Group>
            ),
          },
          { name: t('dashboard.status'), value: <TenantStatus tenant={tenant} /> },
          { name: t('tenants.profile'), value: profile },
          { name: t('page.users'), value: number(users) },
          { name: t('page.groups'), value: number(groups) },
          { name: t('tokens.created'), value: t('tenants.byWhen', { name: createdBy, when: dateTime(created) }) },
          ...(disabled === undefined
            ? []
            : [
                {
                  name: t('tenants.disabled'),
                  value: t('tenants.byWhen', { name: disabledBy, when: dateTime(disabled) }),
                },
              ]),
        ]}
      />
      {operator && (
        <Group gap="sm">
          <Button variant="default" onClick={() => setChange(disabled === undefined ? 'disable' : 'enable')}>
            {t(disabled === undefined ? 'tenants.disable' : 'tenants.enable')}
          </Button>
          {disabled !== undefined && (
            <Button variant="default" disabled={!isEmpty} onClick={() => setChange('remove')}>
              {t('tenants.remove')}
            </Button>
          )}
        </Group>
      )}
      {operator && disabled !== undefined && !isEmpty && <Text c="dimmed">{t('tenants.removeHint')}</Text>}
      {(change === 'disable' || change === 'enable') && (
        <ReasonDialog
          title={t(words[change].title)}
          text={t(words[change].text, { name })}
          isHarmful={change === 'disable'}
          send={(reason) => changeTenant(tenant, change, reason)}
          done={() => t(words[change].done, { name })}
          changed={t('tenants.changed')}
          onClose={close}
        />
      )}
      {change === 'remove' && (
        <ReasonDialog
          title={t('tenants.remove')}
          text={t('tenants.removeText', { name })}
          isHarmful
          send={(reason) => removeTenant(tenant, reason)}
          done={({ revokedTokens }) =>
            `${t('tenants.removed', { name })} ${tn('tenants.revokedTokens', revokedTokens)}`
          }
          onSent={() => navigate({ to: '/console/scim-clients' })}
          changed={t('tenants.changed')}
          onClose={close}
        />
      )}
    </Section>
  )
}
