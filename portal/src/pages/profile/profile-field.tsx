import { Autocomplete, NativeSelect, Textarea, TextInput } from '@mantine/core'
import type { FormAttributeView } from '#sdk/contract/forms.ts'
import { useTranslation } from '../../app/i18n.tsx'

interface ProfileFieldProps {
  readonly field: FormAttributeView
  readonly value: string
  readonly onChange: (value: string) => void
  readonly error: string | undefined
}

/** A configured field. */
export function ProfileField({ field, value, onChange, error }: ProfileFieldProps) {
  const { t } = useTranslation()
  const common = {
    label: field.displayName,
    required: field.required && !field.readOnly,
    error,
    value,
    ...(field.maxChars ? { maxLength: field.maxChars } : {}),
  }
  const labelled = field.values.map(({ name, value: item }) => ({ value: item, label: name }))
  if (field.readOnly) {
    const shown = labelled.find((item) => item.value === value)?.label ?? value
    return <TextInput {...common} value={shown} readOnly variant="filled" />
  }
  if (field.type === 'list') {
    return (
      <NativeSelect
        label={common.label}
        required={common.required}
        error={error}
        value={value}
        onChange={(event) => onChange(event.currentTarget.value)}
        data={[{ value: '', label: t('field.choose') }, ...labelled]}
      />
    )
  }
  if (field.type === 'text-area') {
    return <Textarea {...common} autosize minRows={2} onChange={(event) => onChange(event.currentTarget.value)} />
  }
  if (field.type === 'text-list') {
    return <Autocomplete {...common} data={labelled.map((item) => item.value)} onChange={onChange} />
  }
  return <TextInput {...common} onChange={(event) => onChange(event.currentTarget.value)} />
}
