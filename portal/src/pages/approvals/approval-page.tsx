import { Alert, Button, Paper, Stack, Text, Title, VisuallyHidden } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import type { ApprovalDetails } from '#features/portal/contract/main-requests.ts'
import { approvalQuery, askRequester } from '../../api/approvals.ts'
import { ApiError } from '../../api/call.ts'
import { gatewayNow } from '../../api/gateway-clock.ts'
import { usePerson } from '../../app/config.tsx'
import { useTranslation } from '../../app/i18n.tsx'
import { isolated } from '../../app/isolated.ts'
import { Answer } from '../../components/answer.tsx'
import { useDraft } from '../../components/draft.ts'
import { Facts } from '../../components/facts.tsx'
import { Icon } from '../../components/icon.tsx'
import { Markdown } from '../../components/markdown.tsx'
import { useSay } from '../../components/notices.tsx'
import { Page } from '../../components/page.tsx'
import { Names, useNames } from '../../components/person-names.tsx'
import { useRequestFacts } from '../../components/request-facts.tsx'
import { RequestMessages } from '../../components/request-messages.tsx'
import { isVisitor, requesterText } from '../../components/requester.tsx'
import { Failure } from '../../components/states.tsx'
import { Preview } from './change-preview.tsx'
import { Decided } from './decided.tsx'
import { DecisionForm } from './decision-form.tsx'
import { hasEnded } from './ended.ts'
import { ReassignDialog } from './reassign-dialog.tsx'
import { Subject } from './subject.tsx'
import { useDecision } from './use-decision.ts'

const route = getRouteApi('/approvals/$id')

/** One approval: what it changes, the requester and the reason. On a phone, the changes are seen without scrolling. */
export function ApprovalPage() {
  const { t } = useTranslation()
  const { id } = route.useParams()
  const query = useQuery(approvalQuery(id))
  return (
    <Page
      title={query.data?.label ?? t('approval.title')}
      actions={
        <Button
          variant="default"
          renderRoot={(props) => <Link to="/approvals" {...props} />}
          leftSection={<Icon name="back" size={18} />}
        >
          {t('page.approvals')}
        </Button>
      }
    >
      <Answer query={query} shape="facts" rows={6}>
        {(details) => (
          <Names of={[details]} withLogin>
            <Stack>
              <div className="details">
                <Change details={details} />
                <About details={details} />
              </div>
              <Messages details={details} />
              {details.status === 'open' ? <Decide details={details} /> : <Decided details={details} />}
            </Stack>
          </Names>
        )}
      </Answer>
    </Page>
  )
}

function About({ details }: { readonly details: ApprovalDetails }) {
  const { t, dateTime, relative } = useTranslation()
  const nameOf = useNames()
  const { displayName, user, wfLabel, wfStart, approvers, onBehalfOf } = details
  const facts = [
    { name: t('request.for'), value: nameOf(user, displayName) },
    { name: t('request.by'), value: requesterText(details, t, nameOf) },
    { name: t('request.created'), value: `${dateTime(wfStart)} (${relative(wfStart)})` },
    { name: t('approvals.workflow'), value: wfLabel },
    ...useRequestFacts(details),
    ...(approvers.length === 0
      ? []
      : [{ name: t('approval.approvers'), value: approvers.map((login) => nameOf(login)).join(', ') }]),
  ]
  return (
    <Paper withBorder p="md" className="details-facts" component="section" aria-label={t('approval.about')}>
      <Facts facts={facts} />
      {onBehalfOf !== undefined && (
        <Alert variant="outline" color="gray" icon={<Icon name="people" />} mt="md">
          {t('approval.onBehalfOf', { who: nameOf(onBehalfOf) })}
        </Alert>
      )}
    </Paper>
  )
}

/** The subject of the decision: the workflow, its values and its user. */
function Change({ details }: { readonly details: ApprovalDetails }) {
  const { t } = useTranslation()
  const { wfDescription, requestAttributes } = details
  const parameters = Object.entries(requestAttributes).map(([name, value]) => ({ name, value }))
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="change">
      <Title order={2} size="h5" id="change" mb="xs">
        {t('approval.change')}
      </Title>
      {wfDescription === '' ? <Text mb="xs">{isolated(details.wfLabel)}</Text> : <Markdown text={wfDescription} />}
      <Facts facts={parameters} />
      {details.mayDecide && !hasEnded(details, gatewayNow()) && (
        <Preview
          approval={details.approval}
          version={details.version}
          submitted={details.registration === true ? details.userObj.attribs : {}}
        />
      )}
      <Subject {...details} />
    </Paper>
  )
}

function Messages({ details: { approval, messages, mayDecide, requestor } }: { readonly details: ApprovalDetails }) {
  const client = useQueryClient()
  return (
    <RequestMessages
      messages={messages}
      kind={mayDecide && !isVisitor(requestor) ? 'question' : undefined}
      draft={`question-${approval}`}
      send={(text) => askRequester(approval, text)}
      onSent={() => void client.invalidateQueries({ queryKey: ['approval', approval] })}
    />
  )
}

const statusOf = (error: Error | null): number => (error instanceof ApiError ? error.status : 0)

function Decide({ details }: { readonly details: ApprovalDetails }) {
  const { t } = useTranslation()
  const { approval, label, version, mayDecide } = details
  const navigate = useNavigate()
  const say = useSay()
  const decision = useDecision()
  const [isReassigning, { open, close }] = useDisclosure(false)
  const [comment, setComment, clearComment] = useDraft(usePerson().login, `approval-${approval}`, '')
  if (!mayDecide) {
    return (
      <Alert color="gray" variant="outline" icon={<Icon name="warning" />}>
        {t('approval.mayNot')}
      </Alert>
    )
  }
  const isEnded = hasEnded(details, gatewayNow())
  const isLate = (error: Error | null): boolean => [409, 412].includes(statusOf(error))
  const decide = async (approved: boolean, reason: string): Promise<void> => {
    try {
      await decision.mutateAsync({ approvals: [approval], approved, reason, version })
    } catch (error) {
      // The page already shows the new state instead of this form.
      const exists = error instanceof ApiError && error.code === 'ACCOUNT_EXISTS'
      if (exists) say(t('approval.accountExistsNow'), 'bad')
      else if (error instanceof Error && isLate(error)) say(t('approval.changedMeanwhile'), 'bad')
      return
    }
    clearComment()
    say(t(approved ? 'approval.approvedNow' : 'approval.deniedNow', { label }))
    await navigate({ to: '/approvals' })
  }
  const isExplained = isLate(decision.error) || (isEnded && statusOf(decision.error) === 422)
  return (
    <Paper className="action-bar decision-bar" component="section" aria-labelledby="decide">
      <VisuallyHidden>
        <h2 id="decide">{t('approval.decide')}</h2>
      </VisuallyHidden>
      <Stack>
        {decision.error !== null && !isExplained && <Failure error={decision.error} />}
        {isEnded && (
          <Alert color="yellow" variant="outline" icon={<Icon name="warning" />} role="status">
            {t('approval.endPassed')}
          </Alert>
        )}
        <DecisionForm
          comment={comment}
          onComment={setComment}
          isRequired={details.commentRequired}
          isForVisitor={isVisitor(details.requestor)}
          isPending={decision.isPending}
          denyOnly={isEnded}
          onDecide={(approved, reason) => void decide(approved, reason)}
        />
        <Button variant="subtle" w="fit-content" leftSection={<Icon name="people" size={18} />} onClick={open}>
          {t('reassign.title')}
        </Button>
        {isReassigning && <ReassignDialog details={details} onClose={close} />}
      </Stack>
    </Paper>
  )
}
