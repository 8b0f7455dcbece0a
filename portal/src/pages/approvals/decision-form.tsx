import { Button, Group, Stack, Textarea } from '@mantine/core'
import { useState } from 'react'
import { useTranslation } from '../../app/i18n.tsx'
import { Icon } from '../../components/icon.tsx'
import { maxReason } from '../../components/reason-field.tsx'

interface DecisionFormProps {
  readonly comment: string
  readonly onComment: (comment: string) => void
  readonly isPending: boolean
  /** The request can no longer be approved. */
  readonly denyOnly?: boolean
  readonly onDecide: (approved: boolean, comment: string) => void
}

/** A comment and two buttons. The comment is required, since the requester gets it. */
export function DecisionForm({ comment, onComment, isPending, denyOnly = false, onDecide }: DecisionFormProps) {
  const { t } = useTranslation()
  const [isMissing, setMissing] = useState(false)
  const decide = (approved: boolean): void => {
    const text = comment.trim()
    setMissing(text === '')
    if (text !== '') onDecide(approved, text)
  }
  return (
    <Stack gap="sm">
      <Textarea
        label={t('approval.comment')}
        description={t('approval.commentHint')}
        required
        autosize
        minRows={2}
        maxRows={8}
        maxLength={maxReason}
        value={comment}
        onChange={(event) => onComment(event.currentTarget.value)}
        error={isMissing && comment.trim() === '' ? t('approval.commentRequired') : undefined}
      />
      <Group>
        {!denyOnly && (
          <Button
            leftSection={<Icon name="check" size={18} />}
            loading={isPending}
            onClick={() => decide(true)}
            data-decision="approve"
          >
            {t('approval.approve')}
          </Button>
        )}
        <Button
          variant="default"
          leftSection={<Icon name="close" size={18} />}
          loading={isPending}
          onClick={() => decide(false)}
          data-decision="deny"
        >
          {t('approval.deny')}
        </Button>
      </Group>
    </Stack>
  )
}
