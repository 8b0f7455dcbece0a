import { Alert, Button, Paper, Stack, Text, Title } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import type { RequestDetails } from '#features/portal/contract/main-requests.ts'
import { answerApprover, isGoing, requestQuery } from '../../api/requests.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { Answer } from '../../components/answer.tsx'
import { type Fact, Facts } from '../../components/facts.tsx'
import { Icon } from '../../components/icon.tsx'
import { useLive } from '../../components/live.ts'
import { Page } from '../../components/page.tsx'
import { Names, useNames } from '../../components/person-names.tsx'
import { Preline } from '../../components/preline.tsx'
import { useRequestFacts } from '../../components/request-facts.tsx'
import { RequestMessages } from '../../components/request-messages.tsx'
import { stateLooks } from '../../components/request-states.ts'
import { requesterText } from '../../components/requester.tsx'
import { Status } from '../../components/status.tsx'
import { CancelDialog } from './cancel-dialog.tsx'
import { RequestTimeline } from './request-timeline.tsx'
import { isStopped } from './timeline.ts'

const route = getRouteApi('/requests/$id')

/** One request: its state, its timeline, and its approvers. */
export function RequestDetailsPage() {
  const { t } = useTranslation()
  const { id } = route.useParams()
  const live = useLive(4_000)
  const query = useQuery({
    ...requestQuery(id),
    // While it runs, or its access is being removed, the page refreshes.
    refetchInterval: ({ state: { data } }) =>
      data !== undefined && (isGoing(data.state) || data.access?.state === 'removing') ? live : false,
  })
  const [isCancelling, { open, close }] = useDisclosure(false)
  return (
    <Page
      title={query.data?.label ?? t('page.requests')}
      actions={
        <Button
          variant="default"
          renderRoot={(props) => <Link to="/requests" {...props} />}
          leftSection={<Icon name="back" size={18} />}
        >
          {t('page.requests')}
        </Button>
      }
    >
      <Answer query={query} shape="facts" rows={6}>
        {(details) => (
          <Names of={[details]}>
            <div className="details">
              <Stack className="details-facts" component="section" aria-label={t('approval.about')}>
                <Summary details={details} />
                {details.mayCancel && (
                  <Button
                    variant="default"
                    w="fit-content"
                    leftSection={<Icon name="close" size={18} />}
                    onClick={open}
                  >
                    {t('cancel.title')}
                  </Button>
                )}
                <RequestMessages
                  messages={details.messages}
                  kind={details.mayAnswer ? 'answer' : undefined}
                  draft={`answer-${details.id}`}
                  send={(text) => answerApprover(details.id, text)}
                  onSent={() => void query.refetch()}
                />
              </Stack>
              <Paper withBorder p="md" component="section" aria-labelledby="timeline">
                <Title order={2} size="h4" id="timeline" mb="sm">
                  {t('timeline.title')}
                </Title>
                <RequestTimeline details={details} />
              </Paper>
              <CancelDialog id={details.id} label={details.label} opened={isCancelling} onClose={close} />
            </div>
          </Names>
        )}
      </Answer>
    </Page>
  )
}

function Summary({ details }: { readonly details: RequestDetails }) {
  const { t, dateTime, relative } = useTranslation()
  const nameOf = useNames()
  const { state, subject, created, deadline } = details
  const look = stateLooks[state]
  const facts: readonly Fact[] = [
    { name: t('requests.state'), value: <Status tone={look.tone} icon={look.icon} text={t(look.text)} /> },
    { name: t('request.for'), value: nameOf(subject) },
    { name: t('request.by'), value: requesterText(details, t, nameOf) },
    { name: t('request.created'), value: dateTime(created) },
    ...useRequestFacts(details),
    ...(deadline === undefined
      ? []
      : [{ name: t('request.deadline'), value: `${dateTime(deadline)} (${relative(deadline)})` }]),
  ]
  return (
    <Paper withBorder p="md">
      <Facts facts={facts} />
      <Ending details={details} />
    </Paper>
  )
}

/** Why it did not succeed, and what to do. */
function Ending({ details }: { readonly details: RequestDetails }) {
  const { t, dateTime } = useTranslation()
  const nameOf = useNames()
  const { state, failure, cancel, ended } = details
  if (failure !== undefined) {
    return (
      <Alert color="red" variant="outline" icon={<Icon name="warning" />} mt="md" title={t('request.failure')}>
        <Text size="sm">{failure.text}</Text>
        <Text size="sm">{t(state === 'incident' ? 'request.onHoldText' : 'request.failedText')}</Text>
      </Alert>
    )
  }
  if (state !== 'cancelled' || cancel === undefined) return null
  const title = t(isStopped(details) ? 'request.stopped' : 'timeline.cancelled', { by: nameOf(cancel.by) })
  return (
    <Alert color="gray" variant="outline" icon={<Icon name="close" />} mt="md" title={title}>
      {ended !== undefined && <Text size="sm">{dateTime(ended)}</Text>}
      {cancel.reason !== undefined && (
        <Text size="sm">
          <Preline text={cancel.reason} />
        </Text>
      )}
      <Text size="sm">{t('request.again')}</Text>
    </Alert>
  )
}
