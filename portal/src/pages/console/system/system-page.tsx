import { SimpleGrid, Stack, Text } from '@mantine/core'
import { queryOptions, useQuery } from '@tanstack/react-query'
import * as consoleRoutes from '#features/portal/contract/console-routes.ts'
import type { CertificateView, SystemView } from '#features/portal/contract/console-system.ts'
import { call } from '../../../api/call.ts'
import { admin } from '../../../api/console.ts'
import { gatewayNow } from '../../../api/gateway-clock.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import { Facts } from '../../../components/facts.tsx'
import { useLive } from '../../../components/live.ts'
import { Failure, Loading } from '../../../components/states.tsx'
import { Status } from '../../../components/status.tsx'
import { ConsolePage } from '../console-page.tsx'
import { Section } from '../section.tsx'
import { useByteText } from './byte-text.ts'

const pollMillis = 30_000
/** Certificates that expire sooner are marked. */
const soonMillis = 30 * 24 * 3_600_000

const systemQuery = queryOptions({
  queryKey: ['admin', 'system'],
  queryFn: ({ signal }) => call<SystemView>(admin(consoleRoutes.getSystem), { signal }),
})

/** The processes of the installation, their listeners, the database, and the work that waits. */
export function SystemPage() {
  const { t } = useTranslation()
  const { data, error, refetch } = useQuery({ ...systemQuery, refetchInterval: useLive(pollMillis) })
  return (
    <ConsolePage title={t('system.title')}>
      {data !== undefined ? (
        <System system={data} />
      ) : error === null ? (
        <Loading rows={4} height={120} />
      ) : (
        <Failure error={error} onRetry={() => void refetch()} />
      )}
    </ConsolePage>
  )
}

function System({ system }: { readonly system: SystemView }) {
  const { t, number, dateTime, relative } = useTranslation()
  const bytes = useByteText()
  const { replica, replicas, queues, listeners, database, disk, node } = system
  const unknown = t('system.unknown')
  return (
    <SimpleGrid cols={{ base: 1, lg: 2 }}>
      <Section title={t('system.process')}>
        <Facts
          facts={[
            { name: t('system.version'), value: replica.version },
            { name: t('system.replica'), value: replica.name },
            { name: t('system.started'), value: `${dateTime(replica.started)} (${relative(replica.started)})` },
            { name: 'Node.js', value: node },
            {
              name: t('system.disk'),
              value:
                disk === undefined
                  ? unknown
                  : t('system.free', { free: bytes(disk.freeBytes), total: bytes(disk.totalBytes) }),
            },
          ]}
        />
      </Section>
      <Section title={t('system.queues')}>
        {queues === undefined ? (
          <Text>{unknown}</Text>
        ) : (
          <Facts
            facts={[
              { name: t('system.runsReady'), value: number(queues.runs.ready) },
              { name: t('system.runsRunning'), value: number(queues.runs.running) },
              { name: t('system.runsWaiting'), value: number(queues.runs.waiting) },
              { name: t('system.runsIncident'), value: number(queues.runs.incident) },
              { name: t('system.approvalsOpen'), value: number(queues.approvals.open) },
              { name: t('system.mailsQueued'), value: number(queues.mails.queued) },
              { name: t('system.mailsFailed'), value: number(queues.mails.failed) },
              { name: t('system.mailsUnknown'), value: number(queues.mails.unknown) },
            ]}
          />
        )}
      </Section>
      <Section title={t('system.replicas')}>
        {replicas === undefined ? (
          <Text>{unknown}</Text>
        ) : (
          <Facts
            facts={replicas.map(({ name, version, started, seen }) => ({
              name,
              value: t('system.replicaText', { version, started: relative(started), seen: relative(seen) }),
            }))}
          />
        )}
      </Section>
      <Section title={t('system.database')}>
        <Facts
          facts={[
            { name: t('system.kind'), value: database.kind === 'sqlite' ? 'SQLite' : 'PostgreSQL' },
            { name: t('system.size'), value: database.bytes === undefined ? unknown : bytes(database.bytes) },
          ]}
        />
      </Section>
      {listeners.map(({ name, address, certificate }) => (
        <Section key={name} title={t('system.listener', { name })}>
          <Facts facts={[{ name: t('system.address'), value: address }]} />
          {certificate === undefined ? (
            <Text size="sm" c="dimmed">
              {t('system.noTls')}
            </Text>
          ) : (
            <Certificate certificate={certificate} />
          )}
        </Section>
      ))}
    </SimpleGrid>
  )
}

function Certificate({ certificate }: { readonly certificate: CertificateView }) {
  const { t, dateTime, relative } = useTranslation()
  const { subject, issuer, names, validFrom, validTo, problem } = certificate
  const left = Date.parse(validTo) - gatewayNow()
  return (
    <Stack gap="xs">
      {left <= 0 ? (
        <Status tone="bad" icon="warning" text={t('system.expired', { when: relative(validTo) })} />
      ) : (
        <Status
          tone={left < soonMillis ? 'waiting' : 'good'}
          icon={left < soonMillis ? 'warning' : 'check'}
          text={t('system.expires', { when: relative(validTo) })}
        />
      )}
      {problem !== undefined && (
        <Text size="sm" c="red">
          {isolated(problem)}
        </Text>
      )}
      <Facts
        facts={[
          { name: t('system.certificate'), value: subject },
          { name: t('system.issuer'), value: issuer },
          { name: t('system.names'), value: names.join(', ') },
          { name: t('system.validFrom'), value: dateTime(validFrom) },
          { name: t('system.validTo'), value: dateTime(validTo) },
        ]}
      />
    </Stack>
  )
}
