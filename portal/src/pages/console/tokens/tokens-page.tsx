import { Anchor, Badge, Group, SimpleGrid, Stack, Text, Title } from '@mantine/core'
import { queryOptions, useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import type { AuditEntryView } from '#features/portal/contract/console-audit.ts'
import * as consoleRoutes from '#features/portal/contract/console-routes.ts'
import type { TokenIssuersView, TokenIssuerView, TokenKeyView } from '#features/portal/contract/console-tokens.ts'
import { statisticsQuery } from '../../../api/admin.ts'
import { call } from '../../../api/call.ts'
import { admin, consolePath } from '../../../api/console.ts'
import { gatewayNow } from '../../../api/gateway-clock.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import { Facts } from '../../../components/facts.tsx'
import { useLive } from '../../../components/live.ts'
import { Failure, Loading } from '../../../components/states.tsx'
import { Status } from '../../../components/status.tsx'
import { reasonText } from '../audit/reason-text.ts'
import { ConsoleList } from '../console-list.tsx'
import { ConsolePage } from '../console-page.tsx'
import { FilterForm, filled } from '../filter-form.tsx'
import { Section } from '../section.tsx'
import { readWorkload, subjectOf } from './workload.ts'

const route = getRouteApi('/console/tokens')
const pollMillis = 30_000
const hourMillis = 3_600_000

const issuersQuery = queryOptions({
  queryKey: ['admin', 'tokens'],
  queryFn: ({ signal }) => call<TokenIssuersView>(admin(consoleRoutes.getTokenIssuers), { signal }),
})

const lastDay = () => ({
  by: 'hour',
  from: new Date(gatewayNow() - 24 * hourMillis).toISOString(),
  to: new Date(gatewayNow()).toISOString(),
})

/** Who issues tokens, with which keys, how many, and to which workloads. */
export function TokensPage() {
  const { t } = useTranslation()
  const { data, error, refetch } = useQuery({ ...issuersQuery, refetchInterval: useLive(pollMillis) })
  return (
    <ConsolePage title={t('tokens.title')}>
      <Counts />
      {data !== undefined ? (
        data.issuers.length === 0 ? (
          <Text c="dimmed">{t('tokens.noIssuers')}</Text>
        ) : (
          <SimpleGrid cols={{ base: 1, xl: 2 }}>
            {data.issuers.map((issuer) => (
              <Issuer key={`${issuer.kind} ${issuer.name}`} issuer={issuer} />
            ))}
          </SimpleGrid>
        )
      ) : error === null ? (
        <Loading rows={2} height={160} />
      ) : (
        <Failure error={error} onRetry={() => void refetch()} />
      )}
      {data?.issuers.some(({ kind }) => kind === 'workloads') === true && <Decisions issuers={data.issuers} />}
    </ConsolePage>
  )
}

function Counts() {
  const { t, number } = useTranslation()
  const { data, error, refetch } = useQuery({ ...statisticsQuery('tokens', lastDay), refetchInterval: useLive(60_000) })
  if (data === undefined) {
    return error === null ? <Loading rows={1} /> : <Failure error={error} onRetry={() => void refetch()} />
  }
  const sum = (of: 'sts' | 'issuers', what: 'issued' | 'refused'): string =>
    number(data.parts.reduce((total, { tokens }) => total + tokens[of][what], 0))
  return (
    <Section title={t('tokens.lastDay')}>
      <Facts
        facts={[
          {
            name: t('tokens.workloads'),
            value: t('tokens.counts', { issued: sum('sts', 'issued'), refused: sum('sts', 'refused') }),
          },
          {
            name: t('tokens.users'),
            value: t('tokens.counts', { issued: sum('issuers', 'issued'), refused: sum('issuers', 'refused') }),
          },
        ]}
      />
    </Section>
  )
}

function Issuer({ issuer }: { readonly issuer: TokenIssuerView }) {
  const { t, number, dateTime } = useTranslation()
  const { name, kind, at, audience, accepts, rules, keys, publications } = issuer
  return (
    <Section title={t(kind === 'workloads' ? 'tokens.endpointName' : 'tokens.issuerName', { name })}>
      <Facts
        facts={[
          { name: t('tokens.issuer'), value: issuer.issuer },
          ...(audience === undefined ? [] : [{ name: t('tokens.audience'), value: audience }]),
          { name: t('tokens.algorithm'), value: issuer.algorithm },
          { name: t('tokens.lifetime'), value: t('tokens.seconds', { seconds: number(issuer.maxTokenSeconds) }) },
          { name: t(kind === 'workloads' ? 'tokens.accepts' : 'tokens.clients'), value: accepts.join(', ') },
          { name: t('tokens.rules'), value: rules === 0 ? t('tokens.noRules') : number(rules) },
          { name: t('configuration.place'), value: at },
        ]}
      />
      <Title order={3} size="h5">
        {t('tokens.keys')}
      </Title>
      {keys === undefined ? (
        <Status tone="bad" icon="warning" text={t('tokens.keysUnreadable')} />
      ) : keys.length === 0 ? (
        <Text c="dimmed">{t('tokens.noKeys')}</Text>
      ) : (
        keys.map((key) => <Key key={key.kid} ringKey={key} />)
      )}
      {publications.map(({ place, done, failures, error, retryAt }) => (
        <Stack key={place} gap={2}>
          <Status
            tone={failures === 0 ? 'good' : 'bad'}
            icon={failures === 0 ? 'check' : 'warning'}
            text={t(failures === 0 ? 'tokens.published' : 'tokens.publishFailed', {
              place,
              when: done === undefined ? t('tokens.never') : dateTime(done),
            })}
          />
          {error !== undefined && <Text size="sm">{isolated(error)}</Text>}
          {retryAt !== undefined && (
            <Text size="sm" c="dimmed">
              {t('tokens.retryAt', { when: dateTime(retryAt) })}
            </Text>
          )}
        </Stack>
      ))}
      <Anchor renderRoot={(props) => <Link to="/console/audit" search={{ target: name }} {...props} />}>
        {t('tokens.auditOf', { name })}
      </Anchor>
    </Section>
  )
}

const states = { next: 'tokens.next', active: 'tokens.active', retiring: 'tokens.retiring' } as const

function Key({ ringKey }: { readonly ringKey: TokenKeyView }) {
  const { t, dateTime } = useTranslation()
  const { kid, algorithm, state, given, custody, created, visibleSince, activated, activatesAt, goneAt } = ringKey
  const times: readonly (readonly [string, string | undefined])[] = [
    [t('tokens.created'), created],
    [t('tokens.visibleSince'), visibleSince],
    [t('tokens.activatesAt'), activatesAt],
    [t('tokens.activated'), activated],
    [t('tokens.goneAt'), goneAt],
  ]
  return (
    <Stack gap="xs">
      <Group gap="xs">
        <Badge variant="light" color={state === 'active' ? 'green' : 'gray'}>
          {t(states[state])}
        </Badge>
        <Text size="sm">
          <code>{isolated(kid)}</code> {algorithm}
        </Text>
      </Group>
      <Facts
        facts={[
          ...times.flatMap(([name, at]) => (at === undefined ? [] : [{ name, value: dateTime(at) }])),
          ...(given ? [{ name: t('tokens.source'), value: t('tokens.given') }] : []),
          ...(custody === undefined ? [] : [{ name: t('tokens.custody'), value: custody }]),
        ]}
      />
    </Stack>
  )
}

function Decisions({ issuers }: { readonly issuers: readonly TokenIssuerView[] }) {
  const { t, exactTime } = useTranslation()
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const endpoints = issuers.filter(({ kind }) => kind === 'workloads').map(({ name }) => name)
  const endpoint = search.endpoint ?? endpoints[0] ?? ''
  const actions = { issue: 'auditAction.issue', refuse: 'auditAction.refuse' } as const
  return (
    <Section title={t('tokens.decisions')}>
      <ConsoleList<AuditEntryView>
        label={t('tokens.decisions')}
        path={consolePath(consoleRoutes.listAudit)}
        filter={{ target: endpoint, subject: subjectOf(search) }}
        empty={t('audit.none')}
        everyMillis={pollMillis}
        columns={[
          { key: 'time', name: t('dashboard.time'), width: 10, cell: ({ time }) => exactTime(time) },
          {
            key: 'outcome',
            name: t('tokens.outcome'),
            width: 7,
            cell: ({ action, kind }) =>
              kind === 'token' && (action === 'issue' || action === 'refuse') ? (
                <span className={action === 'issue' ? 'status-good' : 'status-bad'}>{t(actions[action])}</span>
              ) : (
                t('auditKind.key')
              ),
          },
          {
            key: 'namespace',
            name: t('tokens.namespace'),
            width: 9,
            cell: ({ subject }) => isolated(readWorkload(subject)?.namespace ?? ''),
          },
          {
            key: 'account',
            name: t('tokens.serviceAccount'),
            width: 10,
            cell: ({ subject }) => isolated(readWorkload(subject)?.serviceAccount ?? subject),
          },
          {
            key: 'reason',
            name: t('dashboard.reason'),
            width: 20,
            cell: ({ reason = '' }) => isolated(reasonText(reason)),
          },
        ]}
      >
        <FilterForm
          fields={[
            {
              name: 'endpoint',
              label: t('tokens.endpoint'),
              options: endpoints.map((value) => ({ value, label: value })),
            },
            { name: 'namespace', label: t('tokens.namespace') },
            { name: 'serviceAccount', label: t('tokens.serviceAccount') },
          ]}
          values={{ ...search, endpoint }}
          onApply={(next) => void navigate({ search: filled(next) })}
        />
      </ConsoleList>
      <Text size="sm" c="dimmed">
        {t('tokens.both')}
      </Text>
    </Section>
  )
}
