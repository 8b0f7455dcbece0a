import { Alert, Button, Text } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { SubmitOutcome } from '#features/portal/contract/main.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { isolated } from '../../app/isolated.ts'
import { Icon } from '../../components/icon.tsx'
import { pickedName } from '../../components/person-picker.tsx'
import { Status } from '../../components/status.tsx'

export interface SentLine {
  readonly uuid: string
  readonly label: string
  /** For whom, if not for the user. */
  readonly subjects: readonly string[]
  /** The result of the decision that was sent with it. */
  readonly decision: SubmitOutcome['decision']
}

/** The submitted lines. A decision that was not accepted is reported: the request waits for others. */
export function Submitted({ lines }: { readonly lines: readonly SentLine[] }) {
  const { t, tn } = useTranslation()
  if (lines.length === 0) return null
  return (
    <Alert
      color="green"
      variant="outline"
      icon={<Icon name="check" />}
      title={tn('cart.submitted', lines.length)}
      role="status"
    >
      {lines.map(({ uuid, label, subjects, decision }) => (
        <div key={uuid}>
          <Text size="sm">
            {[label, ...(subjects.length === 0 ? [] : [subjects.map(pickedName).join(', ')])].map(isolated).join(' · ')}
          </Text>
          {decision === 'left' && <Status tone="waiting" icon="warning" text={t('cart.decisionLeft')} />}
          {decision === 'none' && <Status tone="plain" icon="dot" text={t('cart.decisionNone')} />}
        </div>
      ))}
      <Button mt="sm" size="xs" variant="default" renderRoot={(props) => <Link to="/requests" {...props} />}>
        {t('cart.toRequests')}
      </Button>
    </Alert>
  )
}
