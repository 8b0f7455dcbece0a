import { SimpleGrid } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { StatisticsView } from '#features/portal/contract/main-admin.ts'
import { statisticsQuery } from '../../api/admin.ts'
import { gatewayNow } from '../../api/gateway-clock.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { localeOf } from '../../app/language.ts'
import { Answer } from '../../components/answer.tsx'
import { LazyBars } from '../../components/lazy-bars.tsx'
import { useLive } from '../../components/live.ts'
import { CountedPicture } from './counted-picture.tsx'
import { amountOf, formatDuration, unitOf } from './durations.ts'
import {
  approvalEvents,
  approvalSeries,
  callSeries,
  outcomeStates,
  runOutcomes,
  runSeries,
  tokenSeries,
} from './outcomes.ts'
import { middleOf, type Period, spanOf } from './periods.ts'
import { Picture } from './picture.tsx'

/** Recent requests, approvals, tokens, and calls of SCIM clients. */
export function Pictures({ period }: { readonly period: Period }) {
  const statistics = useQuery({
    ...statisticsQuery(period, () => spanOf(period, gatewayNow())),
    refetchInterval: useLive(60_000),
  })
  return (
    <Answer query={statistics} rows={2}>
      {(counted) => <Drawn statistics={counted} />}
    </Answer>
  )
}

function Drawn({ statistics }: { readonly statistics: StatisticsView }) {
  const { t } = useTranslation()
  const when = usePartLabel(statistics)
  const { parts, workflows, scimClients } = statistics
  const overTime = <C,>(counts: (part: (typeof parts)[number]) => C) =>
    parts.map((part) => ({ label: when(part.from), counts: counts(part) }))
  return (
    <SimpleGrid cols={{ base: 1, lg: 2 }}>
      <CountedPicture
        title={t('dashboard.runs')}
        series={runSeries}
        points={overTime(({ requests }) => runOutcomes(requests))}
        form="over-time"
        runsOf={(outcome, part) => ({ state: outcomeStates[outcome].join(','), ...periodOf(statistics, part) })}
      />
      <CountedPicture
        title={t('dashboard.runsByWorkflow')}
        series={runSeries}
        points={workflows.map(({ name, requests }) => ({ label: name, counts: runOutcomes(requests) }))}
        form="by-name"
        runsOf={(outcome, workflow) => ({
          state: outcomeStates[outcome].join(','),
          name: workflow === undefined ? undefined : workflows[workflow]?.name,
          ...periodOf(statistics),
        })}
      />
      <CountedPicture
        title={t('dashboard.approvals')}
        series={approvalSeries}
        points={overTime(({ approvals }) => approvalEvents(approvals))}
        form="side-by-side"
      />
      <DecisionTimes statistics={statistics} />
      <CountedPicture
        title={t('dashboard.stsTokens')}
        series={tokenSeries}
        points={overTime(({ tokens }) => tokens.sts)}
        form="over-time"
      />
      <CountedPicture
        title={t('dashboard.issuerTokens')}
        series={tokenSeries}
        points={overTime(({ tokens }) => tokens.issuers)}
        form="over-time"
      />
      <CountedPicture
        title={t('dashboard.calls')}
        hint={t('dashboard.callsHint')}
        series={callSeries}
        points={overTime(({ scim }) => scim)}
        form="over-time"
      />
      <CountedPicture
        title={t('dashboard.callsByClient')}
        series={callSeries}
        points={scimClients.map(({ gateway, client, calls }) => ({ label: `${client} · ${gateway}`, counts: calls }))}
        form="by-name"
      />
    </SimpleGrid>
  )
}

/** The time of a part, or of all. */
const periodOf = ({ from, to, parts }: StatisticsView, part?: number) =>
  part === undefined ? { from, until: to } : { from: parts[part]?.from, until: parts[part + 1]?.from ?? to }

/** How long requests wait for a decision. */
function DecisionTimes({ statistics }: { readonly statistics: StatisticsView }) {
  const { t, language } = useTranslation()
  const when = usePartLabel(statistics)
  const { parts, decisionMillis } = statistics
  const locale = localeOf(language, navigator.languages)
  const unit = unitOf(Math.max(0, ...parts.map(({ approvals }) => approvals.decisionMillis ?? 0)))
  const own = unitOf(decisionMillis ?? 0)
  const duration = formatDuration(locale, (decisionMillis ?? 0) / own.millis, own, 'long')
  return (
    <Picture
      title={t('dashboard.decisionTime')}
      text={t('dashboard.median', { duration })}
      isEmpty={decisionMillis === undefined}
    >
      <LazyBars
        label={t('dashboard.decisionTime')}
        series={[{ name: 'median', label: t('dashboard.decisionTime'), color: 'blue.5' }]}
        data={parts.map(({ from, approvals }) => ({
          label: when(from),
          median: amountOf(approvals.decisionMillis, unit),
        }))}
        format={(amount) => formatDuration(locale, amount, unit, 'short')}
      />
    </Picture>
  )
}

/** The label of a part: its hour, or its day. */
function usePartLabel({ by }: Pick<StatisticsView, 'by'>): (from: string) => string {
  const { language } = useTranslation()
  const format = new Intl.DateTimeFormat(
    localeOf(language, navigator.languages),
    by === 'day' ? { day: 'numeric', month: 'short' } : { weekday: 'short', hour: '2-digit', minute: '2-digit' },
  )
  return (from) => format.format(by === 'day' ? middleOf(from, by) : Date.parse(from))
}
