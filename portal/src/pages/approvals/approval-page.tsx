import { Alert, Badge, Button, Group, Paper, Stack, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import type { ApprovalDetails } from '#contract/main-requests.ts'
import { approvalQuery } from '../../api/approvals.ts'
import { ApiError } from '../../api/call.ts'
import { usePerson } from '../../app/config.tsx'
import { useTranslation } from '../../app/i18n.tsx'
import { Answer } from '../../components/answer.tsx'
import { useDraft } from '../../components/draft.ts'
import { Facts } from '../../components/facts.tsx'
import { Icon } from '../../components/icon.tsx'
import { useSay } from '../../components/notices.tsx'
import { Page } from '../../components/page.tsx'
import { Failure } from '../../components/states.tsx'
import { Decided } from './decided.tsx'
import { DecisionForm } from './decision-form.tsx'
import { Foreseen } from './foreseen-changes.tsx'
import { useDecision } from './use-decision.ts'

const route = getRouteApi('/approvals/$id')

/** One approval: who asks for what, and why. */
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
  const { displayName, user, requestor, reason, wfLabel, wfStart, accessEnds, approvers, onBehalfOf } = details
  const facts = [
    { name: t('request.for'), value: displayName === user ? user : `${displayName} (${user})` },
    { name: t('request.by'), value: requestor },
    { name: t('request.created'), value: `${moment(wfStart)} (${relative(wfStart)})` },
    { name: t('approvals.workflow'), value: wfLabel },
    ...(reason === '' ? [] : [{ name: t('cart.reason'), value: <span className="preline">{reason}</span> }]),
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

/** What the decision is about: what will be done, with which values, and who the person is today. */
function Change({ details }: { readonly details: ApprovalDetails }) {
  const { t } = useTranslation()
  const { wfDescription, requestAttributes, userObj } = details
  const parameters = Object.entries(requestAttributes).map(([name, value]) => ({ name, value }))
  const attributes = Object.entries(userObj.attribs).map(([name, { values }]) => ({ name, value: values.join(', ') }))
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="change">
      <Title order={2} size="h5" id="change" mb="xs">
        {t('approval.change')}
      </Title>
      <Text mb={parameters.length === 0 ? 0 : 'sm'}>{wfDescription === '' ? details.wfLabel : wfDescription}</Text>
      <Facts facts={parameters} />
      {details.mayDecide && <Foreseen approval={details.approval} version={details.version} />}
      <Title order={3} size="h6" mt="md" mb="xs">
        {t('approval.person')}
      </Title>
      <Facts facts={attributes} />
      {userObj.groups.length > 0 && (
        <>
          <Text size="sm" c="dimmed" mt="sm" mb={4}>
            {t('profile.groups')}
          </Text>
          <Group gap={6}>
            {userObj.groups.map((group) => (
              <Badge key={group} variant="default" tt="none">
                {group}
              </Badge>
            ))}
          </Group>
        </>
      )}
    </Paper>
  )
}

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
  const isLate = (error: Error | null): boolean => error instanceof ApiError && [409, 412].includes(error.status)
  const decide = async (approved: boolean, reason: string): Promise<void> => {
    try {
      await decision.mutateAsync({ approvals: [approval], approved, reason, version })
    } catch (error) {
      // The page shows by now how it stands, and no longer this form.
      if (error instanceof Error && isLate(error)) say(t('approval.changedMeanwhile'), 'bad')
      return
    }
    clearComment()
    say(t(approved ? 'approval.approvedNow' : 'approval.deniedNow', { label }))
    await navigate({ to: '/approvals' })
  }
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="decide">
      <Title order={2} size="h5" id="decide" mb="xs">
        {t('approval.decide')}
      </Title>
      <Stack>
        {decision.error !== null && !isLate(decision.error) && <Failure error={decision.error} />}
        <DecisionForm
          comment={comment}
          onComment={setComment}
          isPending={decision.isPending}
          onDecide={(approved, reason) => void decide(approved, reason)}
        />
      </Stack>
    </Paper>
  )
}
