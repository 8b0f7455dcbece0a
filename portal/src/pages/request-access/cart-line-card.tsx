import {
  ActionIcon,
  Alert,
  Group,
  NativeSelect,
  Paper,
  SegmentedControl,
  Stack,
  Text,
  TextInput,
  Title,
} from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { rightsQuery } from '../../api/workflows.ts'
import { useConfig } from '../../app/config.tsx'
import { useTranslation } from '../../app/i18n.tsx'
import { Icon } from '../../components/icon.tsx'
import { markdownText } from '../../components/markdown-blocks.ts'
import { PersonPicker } from '../../components/person-picker.tsx'
import { maxReason, ReasonField } from '../../components/reason-field.tsx'
import { AccessEndField } from './access-end-field.tsx'
import type { CartLine, LineProblem } from './cart.ts'

interface LineProps {
  readonly line: CartLine
  readonly onChange: (change: Partial<CartLine>) => void
}

interface CartLineCardProps extends LineProps {
  readonly problems: readonly LineProblem[]
  /** When the access ends that the user has. */
  readonly current: string | undefined
  /** The gateway's rejection of the line. */
  readonly refusal: string | undefined
  /** False if one reason applies to all. */
  readonly withReason: boolean
  readonly onRemove: () => void
}

export function CartLineCard(props: CartLineCardProps) {
  const { line, problems, current, refusal, withReason, onChange, onRemove } = props
  const { t } = useTranslation()
  const { createsUnknownUsers } = useConfig()
  const rights = useQuery(rightsQuery(line.name))
  const error = (problem: LineProblem): string | undefined => (problems.includes(problem) ? t(problem) : undefined)
  return (
    <Paper withBorder p="md" component="section" aria-label={line.label}>
      <Stack gap="sm">
        <LineHead line={line} onRemove={onRemove} />
        {refusal !== undefined && (
          <Alert color="red" variant="outline" icon={<Icon name="warning" />} role="alert">
            {refusal}
          </Alert>
        )}
        {rights.data?.canDelegate === true && <ForWhom line={line} onChange={onChange} />}
        {line.forOthers && (
          <PersonPicker
            label={t('cart.people')}
            value={line.subjects}
            onChange={(subjects) => onChange({ subjects })}
            free={createsUnknownUsers}
            error={error('cart.subjectsRequired')}
          />
        )}
        {line.accessEnds !== undefined && (
          <AccessEndField
            offer={line.accessEnds}
            value={line.ends ?? ''}
            onChange={(ends) => onChange({ ends })}
            error={problems.flatMap((problem) => (problem.startsWith('cart.end') ? t(problem) : []))[0]}
            current={current}
          />
        )}
        {withReason && (
          <ReasonField
            value={line.reason}
            onChange={(reason) => onChange({ reason })}
            error={error('cart.reasonRequired')}
          />
        )}
        {rights.data?.canPreApprove === true && (
          <OwnDecision
            line={line}
            required={rights.data.commentRequired}
            error={error('cart.decisionReasonRequired')}
            onChange={onChange}
          />
        )}
      </Stack>
    </Paper>
  )
}

interface LineHeadProps {
  readonly line: CartLine
  readonly onRemove: () => void
}

function LineHead({ line, onRemove }: LineHeadProps) {
  const { t } = useTranslation()
  return (
    <Group justify="space-between" wrap="nowrap" align="start">
      <div>
        <Title order={2} size="h5">
          {line.label}
        </Title>
        <Text size="sm" c="dimmed">
          {markdownText(line.description)}
        </Text>
      </div>
      <ActionIcon
        variant="subtle"
        color="gray"
        aria-label={t('request.removeNamed', { label: line.label })}
        onClick={onRemove}
      >
        <Icon name="trash" size={18} />
      </ActionIcon>
    </Group>
  )
}

function ForWhom({ line, onChange }: LineProps) {
  const { t } = useTranslation()
  return (
    <SegmentedControl
      aria-label={t('cart.forWhom')}
      value={line.forOthers ? 'others' : 'me'}
      onChange={(value) => onChange({ forOthers: value === 'others' })}
      data={[
        { value: 'me', label: t('cart.forMe') },
        { value: 'others', label: t('cart.forOthers') },
      ]}
      w="fit-content"
    />
  )
}

interface OwnDecisionProps extends LineProps {
  /** A decision needs a comment. */
  readonly required: boolean
  readonly error: string | undefined
}

/** The decision of a requester who may approve the line. */
function OwnDecision({ line, required, error, onChange }: OwnDecisionProps) {
  const { t } = useTranslation()
  return (
    <Group align="end" grow preventGrowOverflow={false}>
      <NativeSelect
        label={t('cart.decision')}
        value={line.decision}
        onChange={({ currentTarget: { value } }) =>
          onChange({ decision: value === 'approve' || value === 'deny' ? value : '' })
        }
        data={[
          { value: '', label: t('cart.decideNot') },
          { value: 'approve', label: t('approval.approve') },
          { value: 'deny', label: t('approval.deny') },
        ]}
      />
      {line.decision !== '' && (
        <TextInput
          label={t('cart.decisionReason')}
          required={required}
          maxLength={maxReason}
          value={line.decisionReason}
          error={error}
          onChange={(event) => onChange({ decisionReason: event.currentTarget.value })}
        />
      )}
    </Group>
  )
}
