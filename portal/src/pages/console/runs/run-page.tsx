import { Alert, Button, Paper, Stack, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import type { AdminRunDetails } from '#features/portal/contract/main-admin.ts'
import { runQuery } from '../../../api/admin.ts'
import { pinnedDefinitionQuery } from '../../../api/console-runs.ts'
import { isGoing } from '../../../api/requests.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import { Answer } from '../../../components/answer.tsx'
import { type Fact, Facts } from '../../../components/facts.tsx'
import { Icon } from '../../../components/icon.tsx'
import { useLive } from '../../../components/live.ts'
import { Names, useNames } from '../../../components/person-names.tsx'
import { Preline } from '../../../components/preline.tsx'
import { stateLooks } from '../../../components/request-states.ts'
import { requesterText } from '../../../components/requester.tsx'
import { RunActions, useIntervention } from '../../../components/run-actions.tsx'
import { Status } from '../../../components/status.tsx'
import { ConsolePage } from '../console-page.tsx'
import { marksOf } from '../workflows/task-marks.ts'
import { TaskTree } from '../workflows/task-tree.tsx'
import { RunApprovals } from './run-approvals.tsx'
import { RunSteps } from './run-steps.tsx'

const route = getRouteApi('/console/runs/$id')

/** One run: its facts, its steps, its approvals, and its workflow with what became of each task. */
export function RunPage() {
  const { t } = useTranslation()
  const { id } = route.useParams()
  const live = useLive(4_000)
  const { ask, dialog } = useIntervention()
  const query = useQuery({
    ...runQuery(id),
    refetchInterval: ({ state }) => (state.data !== undefined && isGoing(state.data.state) ? live : false),
  })
  return (
    <ConsolePage
      title={query.data?.name ?? t('page.runs')}
      actions={
        <Button
          variant="default"
          renderRoot={(props) => <Link to="/console/runs" {...props} />}
          leftSection={<Icon name="back" size={18} />}
        >
          {t('page.runs')}
        </Button>
      }
    >
      <Answer query={query}>
        {(run) => (
          <Names of={[run]} withLogin>
            <Stack gap="lg">
              <Summary run={run} />
              <RunActions run={run} onAsk={ask} />
              <div>
                <Title order={2} size="h4" mb="sm">
                  {t('runs.diagram')}
                </Title>
                <Diagram run={run} />
              </div>
              <div>
                <Title order={2} size="h4" mb="sm">
                  {t('runs.steps')}
                </Title>
                <RunSteps timeline={run.timeline} />
              </div>
              {run.approvals.length > 0 && <RunApprovals run={run} />}
            </Stack>
          </Names>
        )}
      </Answer>
      {dialog}
    </ConsolePage>
  )
}

function Summary({ run }: { readonly run: AdminRunDetails }) {
  const { t, dateTime, relative } = useTranslation()
  const nameOf = useNames()
  const { id, name, state, subject, reason, created, ended, deadline, requestId, incident, cancel } = run
  const look = stateLooks[state]
  const when = (time: string): string => `${dateTime(time)} (${relative(time)})`
  const facts: readonly (Fact | undefined)[] = [
    { name: t('requests.state'), value: <Status tone={look.tone} icon={look.icon} text={t(look.text)} /> },
    {
      name: t('runs.workflow'),
      value: (
        <Link className="text-link" to="/console/workflows/$name" params={{ name }}>
          {isolated(name)}
        </Link>
      ),
    },
    { name: t('request.for'), value: nameOf(subject) },
    { name: t('request.by'), value: requesterText(run, t, nameOf) },
    reason === undefined ? undefined : { name: t('cart.reason'), value: <Preline text={reason} /> },
    { name: t('request.created'), value: when(created) },
    ended === undefined ? undefined : { name: t('runs.ended'), value: when(ended) },
    deadline === undefined ? undefined : { name: t('request.deadline'), value: when(deadline) },
    cancel === undefined
      ? undefined
      : {
          name: t('runs.stoppedBy'),
          value: [nameOf(cancel.by), cancel.reason].filter((text) => text !== undefined).join(' · '),
        },
    { name: t('runs.id'), value: id },
    requestId === undefined ? undefined : { name: t('dashboard.requestId'), value: requestId },
  ]
  return (
    <Paper withBorder p="md">
      <Facts facts={facts.filter((fact) => fact !== undefined)} />
      {incident !== undefined && (
        <Alert color="red" variant="outline" icon={<Icon name="warning" />} mt="md" title={t(look.text)}>
          <Text size="sm">
            <code>{incident.task}</code> · {isolated(incident.message)}
          </Text>
          {incident.target !== undefined && <Text size="sm">{t('runs.atTarget', { target: incident.target })}</Text>}
        </Alert>
      )}
    </Paper>
  )
}

/** The definition that the run follows, which may be an earlier one. */
function Diagram({ run }: { readonly run: AdminRunDetails }) {
  const { t } = useTranslation()
  const { id, name, definition, definitions, timeline, incident, approvals } = run
  const query = useQuery(pinnedDefinitionQuery(name, definition, id))
  const places = new Map(timeline.map(({ number, task }) => [number, task]))
  const labels = new Map(approvals.map(({ step, label }) => [places.get(step) ?? '', label]))
  if (query.error !== null && query.data === undefined) return <Text c="dimmed">{t('runs.noDiagram')}</Text>
  return (
    <Answer query={query} rows={2}>
      {({ tasks, current }) => (
        <Stack gap="xs">
          {!current && <Text c="dimmed">{t('workflows.earlier')}</Text>}
          <TaskTree
            label={t('runs.diagram')}
            tasks={tasks}
            run={{ id, definitions, labels, marks: marksOf(timeline, incident?.task) }}
          />
        </Stack>
      )}
    </Answer>
  )
}
