import { CloseButton, TextInput } from '@mantine/core'
import { useTranslation } from '../app/i18n.tsx'
import { Icon } from './icon.tsx'

interface SearchBoxProps {
  readonly label: string
  readonly value: string
  readonly onChange: (value: string) => void
}

export function SearchBox({ label, value, onChange }: SearchBoxProps) {
  const { t } = useTranslation()
  return (
    <TextInput
      type="search"
      aria-label={label}
      placeholder={label}
      value={value}
      maxLength={100}
      onChange={(event) => onChange(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key === 'Escape' && value !== '') {
          event.stopPropagation()
          onChange('')
        }
      }}
      leftSection={<Icon name="search" size={18} />}
      rightSection={
        value === '' ? null : <CloseButton size="sm" aria-label={t('action.clear')} onClick={() => onChange('')} />
      }
      className="search-box"
    />
  )
}
