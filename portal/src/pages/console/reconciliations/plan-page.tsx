import { Alert, Button, Group, Progress, Stack, Text } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useEffect } from 'react'
import type { ConsolePlanDetails } from '#features/portal/contract/console-reconciliations.ts'
import * as consoleRoutes from '#features/portal/contract/console-routes.ts'
import { differenceKinds, rowStates } from '#features/reconciliation/contract/plan-words.ts'
import { consolePath } from '../../../api/console.ts'
import { planQuery } from '../../../api/reconciliations.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import { Answer } from '../../../components/answer.tsx'
import { type Fact, Facts } from '../../../components/facts.tsx'
import { Icon } from '../../../components/icon.tsx'
import { usePolling } from '../../../components/live.ts'
import { Preline } from '../../../components/preline.tsx'
import { kindTexts } from '../../../components/row-texts.ts'
import { Status } from '../../../components/status.tsx'
import { ConsolePage } from '../console-page.tsx'
import { Section } from '../section.tsx'
import { PlanActions, usePlanEffect } from './plan-actions.tsx'
import { rowLooks, underWay } from './plan-looks.ts'
import { PlanRows } from './plan-rows.tsx'
import { PlanStatus } from './plan-status.tsx'

const route = getRouteApi('/console/plans/$id')

/** Rows whose runs have not ended are settled after the plan has. */
const isMoving = ({ state, rows }: ConsolePlanDetails): boolean =>
  underWay.has(state) || state === 'paused' || rows.started + rows.waiting > 0

/** One plan: counts, then what happens to it, then its rows. */
export function PlanPage() {
  const { t } = useTranslation()
  const { id } = route.useParams()
  const polling = usePolling(2_000)
  const client = useQueryClient()
  const query = useQuery({
    ...planQuery(id),
    refetchInterval: ({ state }) => (state.data === undefined || isMoving(state.data) ? polling : false),
  })
  const { data } = query
  // The rows are read again when the plan has moved, rather than all the time.
  const place = data && JSON.stringify([data.state, data.rows])
  useEffect(() => {
    if (place === undefined) return
    void client.invalidateQueries({ queryKey: ['admin', consolePath(consoleRoutes.listPlanRows, { id })] })
  }, [client, id, place])
  return (
    <ConsolePage
      title={data === undefined ? t('plans.plan') : t('plans.titleOf', { name: data.reconciliation })}
      actions={
        data === undefined ? undefined : (
          <Button
            variant="default"
            renderRoot={(props) => (
              <Link to="/console/reconciliations/$name" params={{ name: data.reconciliation }} {...props} />
            )}
            leftSection={<Icon name="back" size={18} />}
          >
            {isolated(data.reconciliation)}
          </Button>
        )
      }
    >
      <Answer query={query}>{(plan) => <Plan plan={plan} />}</Answer>
    </ConsolePage>
  )
}

function Plan({ plan }: { readonly plan: ConsolePlanDetails }) {
  const { t } = useTranslation()
  const filter = route.useSearch()
  const navigate = route.useNavigate()
  return (
    <Stack gap="lg">
      <Summary plan={plan} />
      {plan.state === 'planned' && plan.rows.open > 0 && <Effect plan={plan} />}
      <PlanActions plan={plan} />
      <Section title={t('plans.rows')}>
        <PlanRows
          id={plan.id}
          reconciliation={plan.reconciliation}
          filter={filter}
          onFilter={(next) => void navigate({ search: next, replace: true })}
        />
      </Section>
    </Stack>
  )
}

function Summary({ plan }: { readonly plan: ConsolePlanDetails }) {
  const { t, tn, number, dateTime, relative } = useTranslation()
  const { state, problem, due, counts, requestedBy, created, reason, compared, approval, ended, people, limits } = plan
  const when = (time: string): string => `${dateTime(time)} (${relative(time)})`
  const seen = t('plans.seen', { source: number(counts.source), target: number(counts.target) })
  const facts: readonly (Fact | undefined)[] = [
    {
      name: t('plans.comparedAt'),
      value: compared === undefined ? t('plans.notToEnd', { seen }) : `${when(compared)}, ${seen}`,
    },
    people === undefined ? undefined : { name: t('plans.scope'), value: tn('plans.people', people) },
    { name: t('plans.requestedBy'), value: `${requestedBy}, ${when(created)}` },
    reason === undefined ? undefined : { name: t('dashboard.reason'), value: <Preline text={reason} /> },
    approval === undefined
      ? undefined
      : {
          name: t('plans.approvedBy'),
          value: [`${approval.by}, ${when(approval.at)}`, approval.reason]
            .filter((text) => text !== undefined)
            .join(' · '),
        },
    ended === undefined ? undefined : { name: t('plans.endedAt'), value: when(ended) },
    limits === undefined
      ? undefined
      : {
          name: t('plans.limits'),
          value: t('plans.limit', { percent: number(limits.percent), accounts: number(limits.accounts) }),
        },
  ]
  return (
    <Section title={t('plans.found')}>
      <Group gap="md">
        <PlanStatus plan={plan} />
        <Text>{`${t('drift.agree')} ${number(counts.agree)}`}</Text>
        {differenceKinds.map((kind) => {
          const text = `${t(kindTexts[kind])} ${number(counts.differences[kind])}`
          return counts.differences[kind] === 0 ? (
            <Text key={kind} c="dimmed">
              {text}
            </Text>
          ) : (
            <Link
              key={kind}
              className="text-link"
              to="/console/plans/$id"
              params={{ id: plan.id }}
              search={{ kind }}
              resetScroll={false}
            >
              {text}
            </Link>
          )
        })}
      </Group>
      {counts.removes > 0 && <Text>{tn('plans.losing', counts.removes)}</Text>}
      {compared === undefined && <Text c="dimmed">{t('plans.soFar')}</Text>}
      {problem !== undefined && (
        <Alert color="yellow" variant="outline" icon={<Icon name="warning" />}>
          {isolated(problem)}
          {due !== undefined && state === 'paused' && ` ${t('plans.continues', { when: relative(due) })}`}
        </Alert>
      )}
      <Applied plan={plan} />
      <Facts facts={facts.filter((fact) => fact !== undefined)} />
    </Section>
  )
}

/** What Apply will do, above its button. */
function Effect({ plan }: { readonly plan: ConsolePlanDetails }) {
  const { t } = useTranslation()
  const { does, losing } = usePlanEffect(plan)
  return (
    <Section title={t('plans.effect')}>
      <Text>{does}</Text>
      {losing !== undefined && <Status tone="waiting" icon="warning" text={losing} />}
    </Section>
  )
}

/** How far an approved plan is. A row that waits, was skipped or failed is not done. */
function Applied({ plan: { approval, rows } }: { readonly plan: ConsolePlanDetails }) {
  const { t, number } = useTranslation()
  if (approval === undefined) return null
  const { reported, open, started, ...settled } = rows
  const total = rowStates.reduce((sum, state) => sum + rows[state], 0) - reported
  if (total === 0) return null
  const handled = total - open - started
  const words = rowStates.flatMap((state) =>
    state === 'reported' || rows[state] === 0 ? [] : [`${t(rowLooks[state].text)} ${number(rows[state])}`],
  )
  return (
    <div>
      <Progress
        value={(100 * handled) / total}
        aria-label={t('plans.progress')}
        color={settled.failed > 0 ? 'red' : 'teal'}
        transitionDuration={0}
      />
      <Text size="sm" role="status">
        {words.join(' · ')}
      </Text>
    </div>
  )
}
