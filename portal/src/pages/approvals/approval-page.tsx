import { Alert, Button, Paper, Stack, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import type { ApprovalDetails } from '#contract/main-requests.ts'
import { approvalQuery } from '../../api/approvals.ts'
import { ApiError } from '../../api/call.ts'
import { gatewayNow } from '../../api/gateway-clock.ts'
import { usePerson } from '../../app/config.tsx'
import { useTranslation } from '../../app/i18n.tsx'
import { Answer } from '../../components/answer.tsx'
import { useDraft } from '../../components/draft.ts'
import { Facts } from '../../components/facts.tsx'
import { Icon } from '../../components/icon.tsx'
import { useSay } from '../../components/notices.tsx'
import { Page } from '../../components/page.tsx'
import { Preline } from '../../components/preline.tsx'
import { requesterText } from '../../components/requester.ts'
import { Failure } from '../../components/states.tsx'
import { Preview } from './change-preview.tsx'
import { Decided } from './decided.tsx'
import { DecisionForm } from './decision-form.tsx'
import { hasEnded } from './ended.ts'
import { Subject } from './subject.tsx'
import { useDecision } from './use-decision.ts'

const route = getRouteApi('/approvals/$id')

/** One approval: the requester, the request and the reason. */
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
      <Answer query={query}>
        {(details) => (
          <Stack>
            <About details={details} />
            <Change details={details} />
            {details.status === 'open' ? <Decide details={details} /> : <Decided details={details} />}
          </Stack>
        )}
      </Answer>
    </Page>
  )
}

function About({ details }: { readonly details: ApprovalDetails }) {
  const { t, moment, relative } = useTranslation()
  const { displayName, user, requestor, caller, reason, wfLabel, wfStart, accessEnds, approvers, onBehalfOf } = details
  const facts = [
    { name: t('request.for'), value: displayName === user ? user : `${displayName} (${user})` },
    { name: t('request.by'), value: requesterText(requestor, t, caller) },
    { name: t('request.created'), value: `${moment(wfStart)} (${relative(wfStart)})` },
    { name: t('approvals.workflow'), value: wfLabel },
    ...(reason === '' ? [] : [{ name: t('cart.reason'), value: <Preline text={reason} /> }]),
    ...(accessEnds === undefined
      ? []
      : [{ name: t('request.accessEnds'), value: `${moment(accessEnds)} (${relative(accessEnds)})` }]),
    ...(approvers.length === 0 ? [] : [{ name: t('approval.approvers'), value: approvers.join(', ') }]),
  ]
  return (
    <Paper withBorder p="md">
      <Facts facts={facts} />
      {onBehalfOf !== undefined && (
        <Alert variant="outline" color="gray" icon={<Icon name="people" />} mt="md">
          {t('approval.onBehalfOf', { who: onBehalfOf })}
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
      <Text mb={parameters.length === 0 ? 0 : 'sm'}>{wfDescription === '' ? details.wfLabel : wfDescription}</Text>
      <Facts facts={parameters} />
      {details.mayDecide && !hasEnded(details, gatewayNow()) && (
        <Preview approval={details.approval} version={details.version} />
      )}
      <Subject {...details} />
    </Paper>
  )
}

const statusOf = (error: Error | null): number => (error instanceof ApiError ? error.status : 0)

function Decide({ details }: { readonly details: ApprovalDetails }) {
  const { t } = useTranslation()
  const { approval, label, version, mayDecide } = details
  const navigate = useNavigate()
  const say = useSay()
  const decision = useDecision()
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
  const isTold = isLate(decision.error) || (isEnded && statusOf(decision.error) === 422)
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="decide">
      <Title order={2} size="h5" id="decide" mb="xs">
        {t('approval.decide')}
      </Title>
      <Stack>
        {decision.error !== null && !isTold && <Failure error={decision.error} />}
        {isEnded && (
          <Alert color="yellow" variant="outline" icon={<Icon name="warning" />} role="status">
            {t('approval.endPassed')}
          </Alert>
        )}
        <DecisionForm
          comment={comment}
          onComment={setComment}
          isPending={decision.isPending}
          denyOnly={isEnded}
          onDecide={(approved, reason) => void decide(approved, reason)}
        />
      </Stack>
    </Paper>
  )
}
