import { Button, Group, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import type { ConsolePlan, ConsoleReconciliationDetails } from '#features/portal/contract/console-reconciliations.ts'
import * as consoleRoutes from '#features/portal/contract/console-routes.ts'
import { differenceKinds } from '#features/reconciliation/contract/plan-words.ts'
import { consolePath } from '../../../api/console.ts'
import { reconciliationQuery } from '../../../api/reconciliations.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import { Answer } from '../../../components/answer.tsx'
import { DriftText } from '../../../components/drift-text.tsx'
import { Facts } from '../../../components/facts.tsx'
import { Icon } from '../../../components/icon.tsx'
import { LazyBars } from '../../../components/lazy-bars.tsx'
import { usePolling } from '../../../components/live.ts'
import { PersonName } from '../../../components/person-names.tsx'
import { actionTexts, kindTexts } from '../../../components/row-texts.ts'
import { ConsoleList } from '../console-list.tsx'
import { ConsolePage } from '../console-page.tsx'
import { Section } from '../section.tsx'
import { PlanLink } from './plan-link.tsx'
import { PlanStatus } from './plan-status.tsx'
import { RequestPlanButton } from './request-plan-button.tsx'

const route = getRouteApi('/console/reconciliations/$name')

const colors = {
  missing: 'blue.5',
  different: 'orange.6',
  extra: 'red.6',
  ambiguous: 'grape.6',
  unknown: 'gray.5',
} as const

/** One reconciliation: how far its systems agree, over time, and its plans. */
export function ReconciliationPage() {
  const { t } = useTranslation()
  const { name } = route.useParams()
  const query = useQuery({ ...reconciliationQuery(name), refetchInterval: usePolling(10_000) })
  return (
    <ConsolePage
      title={name}
      {...(query.data === undefined ? {} : { intro: query.data.description })}
      actions={
        <Group gap="sm">
          <Button
            variant="default"
            renderRoot={(props) => <Link to="/console/reconciliations" {...props} />}
            leftSection={<Icon name="back" size={18} />}
          >
            {t('page.reconciliations')}
          </Button>
          <Button
            variant="default"
            renderRoot={(props) => <Link to="/console/reconciliations/$name/links" params={{ name }} {...props} />}
          >
            {t('links.title')}
          </Button>
          <RequestPlanButton name={name} isMain />
        </Group>
      }
    >
      <Answer query={query}>{(known) => <Reconciliation known={known} />}</Answer>
    </ConsolePage>
  )
}

function Reconciliation({ known }: { readonly known: ConsoleReconciliationDetails }) {
  const { t, number } = useTranslation()
  const { source, target, apply, rules, missing, different, extra, limits } = known
  return (
    <Stack gap="lg">
      <Section title={t('drift.last')}>
        <DriftText {...known} />
      </Section>
      {known.trend.length > 1 && <Trend known={known} />}
      <Section title={t('drift.setup')}>
        <Facts
          facts={[
            { name: t('drift.systems'), value: `${source} → ${target}` },
            { name: t('drift.rules'), value: [t('links.title'), ...rules].map(isolated).join(', ') },
            { name: t('kind.missing'), value: t(actionTexts[missing]) },
            { name: t('kind.different'), value: t(actionTexts[different]) },
            { name: t('kind.extra'), value: t(actionTexts[extra]) },
            {
              name: t('plans.limits'),
              value: t('plans.limit', { percent: number(limits.percent), accounts: number(limits.accounts) }),
            },
            { name: t('plans.apply'), value: t(apply === 'manual' ? 'drift.byHand' : 'drift.bySchedule') },
          ]}
        />
      </Section>
      <Section title={t('plans.title')}>
        <Plans name={known.name} />
      </Section>
    </Stack>
  )
}

function Trend({ known }: { readonly known: ConsoleReconciliationDetails }) {
  const { t, dateTime } = useTranslation()
  return (
    <Section title={t('drift.trend')}>
      <Text size="sm" c="dimmed">
        {t('drift.trendText')}
      </Text>
      <LazyBars
        label={t('drift.trend')}
        series={differenceKinds.map((kind) => ({ name: kind, label: t(kindTexts[kind]), color: colors[kind] }))}
        data={known.trend.map(({ at, missing, different, extra, ambiguous, unknown }) => ({
          label: dateTime(at),
          missing,
          different,
          extra,
          ambiguous,
          unknown,
        }))}
      />
    </Section>
  )
}

function Plans({ name }: { readonly name: string }) {
  const { t, number } = useTranslation()
  const sum = ({ counts }: ConsolePlan): number =>
    differenceKinds.reduce((total, kind) => total + counts.differences[kind], 0)
  return (
    <ConsoleList<ConsolePlan>
      label={t('plans.title')}
      path={consolePath(consoleRoutes.listPlans, { name })}
      name="plans"
      filter={{}}
      empty={t('plans.none')}
      everyMillis={10_000}
      columns={[
        { key: 'plan', name: t('plans.plan'), width: 12, cell: (plan) => <PlanLink plan={plan} /> },
        {
          key: 'state',
          name: t('requests.state'),
          width: 12,
          cell: (plan) => (
            <>
              <PlanStatus plan={plan} />
              {plan.problem !== undefined && <Text size="sm">{isolated(plan.problem)}</Text>}
            </>
          ),
        },
        { key: 'differences', name: t('plans.differences'), width: 7, cell: (plan) => number(sum(plan)) },
        {
          key: 'by',
          name: t('plans.requestedBy'),
          width: 9,
          cell: ({ requestedBy }) => <PersonName login={requestedBy} />,
        },
      ]}
    />
  )
}
