import { NativeSelect, Textarea } from '@mantine/core'
import { useConfig } from '../app/config.tsx'
import { useTranslation } from '../app/i18n.tsx'

interface ReasonFieldProps {
  readonly value: string
  readonly onChange: (reason: string) => void
  readonly error?: string | undefined
}

/** The limit of the API. */
export const maxReason = 2_000

/** The reason of a request: typed, or chosen if there is a list. */
export function ReasonField({ value, onChange, error }: ReasonFieldProps) {
  const { t } = useTranslation()
  const { reasonIsList, reasons, requireReasons } = useConfig()
  if (reasonIsList) {
    return (
      <NativeSelect
        label={t('cart.reason')}
        required={requireReasons}
        error={error}
        value={value}
        onChange={(event) => onChange(event.currentTarget.value)}
        data={[{ value: '', label: t('cart.chooseReason') }, ...reasons]}
      />
    )
  }
  return (
    <Textarea
      label={t('cart.reason')}
      required={requireReasons}
      error={error}
      autosize
      minRows={2}
      maxRows={8}
      maxLength={maxReason}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  )
}
