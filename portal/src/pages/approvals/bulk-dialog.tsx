import { Alert, Modal, Stack, Text } from '@mantine/core'
import { useState } from 'react'
import type { ApprovalSummary } from '#features/portal/contract/main-requests.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { isolated } from '../../app/isolated.ts'
import type { MessageKey } from '../../app/messages.ts'
import { DialogFooter } from '../../components/dialog-footer.tsx'
import { Icon } from '../../components/icon.tsx'
import { useSay } from '../../components/notices.tsx'
import { useNames } from '../../components/person-names.tsx'
import { requesterText } from '../../components/requester.tsx'
import { Failure } from '../../components/states.tsx'
import { DecisionForm } from './decision-form.tsx'
import { useDecision } from './use-decision.ts'

/** The meaning of one of several answers, by its status. */
const refusals: ReadonlyMap<number, MessageKey> = new Map([
  [409, 'approval.decidedMeanwhile'],
  [422, 'approval.endPassed'],
])

interface BulkDialogProps {
  readonly approvals: readonly ApprovalSummary[]
  readonly onClose: () => void
}

/** One decision about several approvals, with the result of each. */
export function BulkDialog({ approvals, onClose }: BulkDialogProps) {
  const { t, tn } = useTranslation()
  const nameOf = useNames()
  const say = useSay()
  const decision = useDecision()
  const [comment, setComment] = useState('')
  const refused = approvals.flatMap((one) => {
    const result = decision.data?.[one.approval]
    return result === undefined || result.status === 200 ? [] : [{ ...one, ...result }]
  })
  const refusalText = (status: number, code: string | undefined): string | undefined => {
    const key = code === 'ACCOUNT_EXISTS' ? 'approval.accountExistsNow' : refusals.get(status)
    return key && t(key)
  }
  const decide = (approved: boolean, reason: string): void =>
    decision.mutate(
      { approvals: approvals.map(({ approval }) => approval), approved, reason },
      {
        onSuccess: (results) => {
          const done = Object.values(results).filter(({ status }) => status === 200).length
          if (done > 0) say(tn(approved ? 'approvals.approved' : 'approvals.denied', done))
          if (done === approvals.length) onClose()
        },
      },
    )
  return (
    <Modal
      opened
      onClose={onClose}
      size="lg"
      title={tn('approvals.decide', approvals.length)}
      closeButtonProps={{ 'aria-label': t('action.close') }}
    >
      <Stack>
        {decision.data === undefined ? (
          <>
            <ul className="plain-list">
              {approvals.map((one) => (
                <li key={one.approval}>
                  <Text size="sm">
                    {isolated(one.label)} · {isolated(nameOf(one.user, one.displayName))}
                    {(one.requestor !== one.user || one.caller !== undefined) &&
                      ` · ${t('approvals.askedBy', { requestor: requesterText(one, t, nameOf) })}`}
                  </Text>
                </li>
              ))}
            </ul>
            {decision.error !== null && <Failure error={decision.error} />}
            <DecisionForm
              comment={comment}
              onComment={setComment}
              isRequired={approvals.some(({ commentRequired }) => commentRequired)}
              isPending={decision.isPending}
              onDecide={decide}
            />
          </>
        ) : (
          <>
            <Alert
              color="yellow"
              variant="outline"
              icon={<Icon name="warning" />}
              title={tn('approvals.refused', refused.length)}
              role="alert"
            >
              {refused.map(({ approval, label, status, text, code }) => (
                <Text key={approval} size="sm">
                  {isolated(label)}: {refusalText(status, code) ?? text}
                </Text>
              ))}
            </Alert>
            <DialogFooter onCancel={onClose} cancel={t('action.close')} />
          </>
        )}
      </Stack>
    </Modal>
  )
}
