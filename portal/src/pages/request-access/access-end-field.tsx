import { TextInput } from '@mantine/core'
import { gatewayNow } from '../../api/gateway-clock.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { type EndOffer, endFieldType, endLimits, endTime } from './end-field.ts'

interface AccessEndFieldProps {
  readonly offer: EndOffer
  readonly value: string
  readonly onChange: (value: string) => void
  readonly error: string | undefined
}

/** The expiry date: the browser's own field, with its latest value. */
export function AccessEndField({ offer, value, onChange, error }: AccessEndFieldProps) {
  const { t, day, moment } = useTranslation()
  const type = endFieldType(offer)
  const { min, max } = endLimits(offer, gatewayNow())
  const latest = max === undefined ? undefined : endTime(max)?.getTime()
  const hints = [
    ...(offer.required ? [] : [t('cart.endOptional')]),
    ...(latest === undefined ? [] : [t('cart.endLatest', { when: type === 'date' ? day(latest) : moment(latest) })]),
  ]
  return (
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
  )
}
