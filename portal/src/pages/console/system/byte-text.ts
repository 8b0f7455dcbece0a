import { useTranslation } from '../../../app/i18n.tsx'
import { localeOf } from '../../../app/language.ts'

const units = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte'] as const

/** Writes a number of bytes with one digit after the point, such as 1.4 GB. */
export function useByteText(): (bytes: number) => string {
  const { language } = useTranslation()
  const locale = localeOf(language, navigator.languages)
  return (bytes) => {
    const step = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, bytes)) / 3)))
    const unit = units[step] ?? 'byte'
    const format = new Intl.NumberFormat(locale, {
      style: 'unit',
      unit,
      unitDisplay: 'short',
      maximumFractionDigits: 1,
    })
    return format.format(bytes / 1000 ** step)
  }
}
