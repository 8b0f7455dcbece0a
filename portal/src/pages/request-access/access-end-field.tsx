import { Button, Group, Stack, TextInput } from '@mantine/core'
import { gatewayNow } from '../../api/gateway-clock.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { fieldValue } from '../../components/field-time.ts'
import { type EndOffer, endFieldType, endLimits, endPresets, endTime } from './end-field.ts'

interface AccessEndFieldProps {
  readonly offer: EndOffer
  readonly value: string
  readonly onChange: (value: string) => void
  readonly error: string | undefined
  /** When the access ends that the user has: the request extends it. */
  readonly current: string | undefined
}

/** The expiry date: the browser's own field, with its latest value, and usual durations that fill it. */
export function AccessEndField({ offer, value, onChange, error, current }: AccessEndFieldProps) {
  const { t, tn, day, dateTime } = useTranslation()
  const type = endFieldType(offer, value)
  const now = gatewayNow()
  const from = current === undefined ? now : Math.max(now, Date.parse(current))
  const { min, max } = endLimits(offer, now, value, from)
  const latest = max === undefined ? undefined : endTime(max)?.getTime()
  const hints = [
    ...(current === undefined ? [] : [t('cart.endCurrent', { when: dateTime(current) })]),
    ...(offer.required ? [] : [t('cart.endOptional')]),
    ...(latest === undefined ? [] : [t('cart.endLatest', { when: type === 'date' ? day(latest) : dateTime(latest) })]),
  ]
  return (
    <Stack gap={6}>
      <TextInput
        type={type}
        label={t('cart.end')}
        description={hints.length === 0 ? undefined : hints.join(' ')}
        required={offer.required}
        min={min}
        max={max}
        value={value}
        error={error}
        maw={360}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
      <Group gap={6} role="group" aria-label={t('duration.presets')}>
        {endPresets(offer, now, from).map(({ text, count, millis }) => (
          <Button
            key={millis}
            size="compact-sm"
            variant="default"
            onClick={() => onChange(fieldValue(new Date(from + millis)))}
          >
            {current === undefined ? tn(text, count) : t('duration.more', { duration: tn(text, count) })}
          </Button>
        ))}
        {value !== '' && (
          <Button size="compact-sm" variant="subtle" onClick={() => onChange('')}>
            {t('duration.custom')}
          </Button>
        )}
      </Group>
    </Stack>
  )
}
