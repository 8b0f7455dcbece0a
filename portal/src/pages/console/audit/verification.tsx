import { Button, Card, Group, List, Progress, Stack, Text, Title } from '@mantine/core'
import { queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type { AuditProblemView, AuditVerificationView } from '#features/portal/contract/console-audit.ts'
import * as consoleRoutes from '#features/portal/contract/console-routes.ts'
import { call } from '../../../api/call.ts'
import { admin } from '../../../api/console.ts'
import { type Translation, useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import type { MessageKey } from '../../../app/messages.ts'
import { Icon } from '../../../components/icon.tsx'
import { namesIn } from '../../../components/person-names.tsx'
import { Failure, Loading } from '../../../components/states.tsx'
import { Status } from '../../../components/status.tsx'

const pollMillis = 1000

const verificationQuery = queryOptions({
  queryKey: ['admin', 'audit', 'verification'],
  queryFn: ({ signal }) => call<AuditVerificationView>(admin(consoleRoutes.getAuditVerification), { signal }),
  refetchInterval: ({ state }) => (state.data?.state === 'running' ? pollMillis : false),
})

/** Starts a verification of the audit, and shows what the latest one found. */
export function Verification() {
  const { t } = useTranslation()
  const client = useQueryClient()
  const latest = useQuery(verificationQuery)
  const start = useMutation({
    mutationFn: () => call<AuditVerificationView>(admin(consoleRoutes.verifyAudit)),
    onSuccess: (started) => client.setQueryData(verificationQuery.queryKey, started),
    onError: () => void latest.refetch(),
  })
  const { data } = latest
  return (
    <Card withBorder p="md">
      <Stack gap="sm">
        <Group justify="space-between">
          <Title order={2} size="h4">
            {t('audit.verification')}
          </Title>
          <Button
            variant="default"
            leftSection={<Icon name="shield" size={18} />}
            loading={start.isPending}
            disabled={data === undefined || data.state === 'running'}
            onClick={() => start.mutate()}
          >
            {t('audit.verify')}
          </Button>
        </Group>
        {start.error !== null && <Failure error={start.error} />}
        {data === undefined ? (
          latest.error === null ? (
            <Loading rows={1} height={40} />
          ) : (
            <Failure error={latest.error} onRetry={() => void latest.refetch()} />
          )
        ) : (
          <Outcome verification={data} />
        )}
      </Stack>
    </Card>
  )
}

function Outcome({ verification }: { readonly verification: AuditVerificationView }) {
  const { t, tn, number, dateTime } = useTranslation()
  const { state, by = '', replica = '', started, ended, checked = 0, total = 0, report, recorded } = verification
  if (state === 'none') return <Text c="dimmed">{t('audit.neverVerified')}</Text>
  const byWhom = t('audit.verifiedBy', {
    by: namesIn([verification], true)(by),
    replica,
    when: dateTime(ended ?? started ?? 0),
  })
  if (state === 'running') {
    const share = total === 0 ? 100 : Math.min(100, (100 * checked) / total)
    return (
      <Stack gap="xs" role="status">
        <Text size="sm">{t('audit.verifying', { checked: number(checked), total: number(total) })}</Text>
        <Progress value={share} aria-label={t('audit.verification')} />
      </Stack>
    )
  }
  return (
    <Stack gap="xs" role="status">
      {report === undefined ? (
        <Status tone="bad" icon="warning" text={t('audit.notFinished', { checked: number(checked) })} />
      ) : report.problems.length > 0 ? (
        <Status tone="bad" icon="warning" text={tn('audit.problems', report.problems.length)} />
      ) : (
        <Status
          tone={report.authenticated ? 'good' : 'waiting'}
          icon={report.authenticated ? 'check' : 'warning'}
          text={tn('audit.unchanged', checked)}
        />
      )}
      <Text size="sm" c="dimmed">
        {byWhom}
      </Text>
      {report !== undefined && <Report report={report} />}
      {recorded === false && (
        <Text size="sm" c="red">
          {t('audit.notRecorded')}
        </Text>
      )}
    </Stack>
  )
}

function Report({ report }: { readonly report: NonNullable<AuditVerificationView['report']> }) {
  const { t, tn, dateTime } = useTranslation()
  const { authenticated, since, sealed, pruned, problems } = report
  const lines = [
    ...problems.map((problem) => problemText(problem, t)),
    ...(authenticated ? [] : [t('audit.notAuthenticated')]),
    ...(since === undefined ? [] : [t('audit.since', { when: dateTime(since) })]),
    ...(sealed.length === 0 ? [] : [tn('audit.sealed', sealed.length)]),
    ...(pruned.length === 0
      ? []
      : [
          tn(
            'audit.pruned',
            pruned.reduce((sum, { number }) => sum + number, 0),
          ),
        ]),
    t('audit.notCompared'),
  ]
  return (
    <List size="sm">
      {lines.map((line) => (
        <List.Item key={line}>{isolated(line)}</List.Item>
      ))}
    </List>
  )
}

const problems: Readonly<Partial<Record<AuditProblemView['kind'], MessageKey>>> = {
  changed: 'auditProblem.changed',
  removed: 'auditProblem.removed',
  inserted: 'auditProblem.inserted',
  forged: 'auditProblem.forged',
  broken: 'auditProblem.broken',
  unsealed: 'auditProblem.unsealed',
  'no key': 'auditProblem.noKey',
}

function problemText({ kind, chain, number, id }: AuditProblemView, t: Translation['t']): string {
  const where = [
    ...(chain === undefined ? [] : [t('audit.place', { chain: String(chain), number: String(number ?? '?') })]),
    ...(id === undefined ? [] : [id]),
  ]
  const meaning = problems[kind]
  return [meaning === undefined ? kind : t(meaning), ...where].join(': ')
}
