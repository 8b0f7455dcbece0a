import { Button, Textarea } from '@mantine/core'
import { useState } from 'react'
import { useTranslation } from '../../app/i18n.tsx'
import { DialogFooter } from '../../components/dialog-footer.tsx'
import { Icon } from '../../components/icon.tsx'
import { maxReason } from '../../components/reason-field.tsx'

interface DecisionFormProps {
  readonly comment: string
  readonly onComment: (comment: string) => void
  /** A decision needs a comment. */
  readonly isRequired: boolean
  readonly isPending: boolean
  /** The requester can't read comments in the portal. */
  readonly isForVisitor?: boolean
  /** The request can no longer be approved. */
  readonly denyOnly?: boolean
  readonly onDecide: (approved: boolean, comment: string) => void
}

/** A comment and two buttons. */
export function DecisionForm(props: DecisionFormProps) {
  const { comment, onComment, isRequired, isPending, isForVisitor = false, denyOnly = false, onDecide } = props
  const { t } = useTranslation()
  const [isMissing, setMissing] = useState(false)
  const decide = (approved: boolean): void => {
    const text = comment.trim()
    const isComplete = !isRequired || text !== ''
    setMissing(!isComplete)
    if (isComplete) onDecide(approved, text)
  }
  return (
    <div className="decision-form">
      <Textarea
        label={t(isRequired ? 'approval.comment' : 'approval.commentOptional')}
        description={isForVisitor ? undefined : t('approval.commentHint')}
        required={isRequired}
        autosize
        minRows={1}
        maxRows={8}
        maxLength={maxReason}
        value={comment}
        onChange={(event) => onComment(event.currentTarget.value)}
        error={isMissing && comment.trim() === '' ? t('approval.commentRequired') : undefined}
      />
      <DialogFooter>
        <Button
          variant="outline"
          color="red"
          leftSection={<Icon name="close" size={18} />}
          loading={isPending}
          onClick={() => decide(false)}
          data-decision="deny"
        >
          {t('approval.deny')}
        </Button>
        {!denyOnly && (
          <Button
            color="green"
            leftSection={<Icon name="check" size={18} />}
            loading={isPending}
            onClick={() => decide(true)}
            data-decision="approve"
          >
            {t('approval.approve')}
          </Button>
        )}
      </DialogFooter>
    </div>
  )
}
