import { NativeSelect, Select, Textarea, TextInput } from '@mantine/core'
import type { FormAttributeView } from '#sdk/contract/forms.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { autoComplete } from './auto-complete.ts'
import { mostItems } from './field-rules.ts'
import { unique } from './list-items.ts'
import { SuggestField } from './suggest-field.tsx'

export interface FieldProps {
  readonly field: FormAttributeView
  readonly id: string
  readonly label: string
  readonly required: boolean
  readonly value: string
  readonly onChange: (value: string) => void
  readonly onBlur: () => void
  readonly error: string | undefined
}

interface RegisterFieldProps extends FieldProps {
  readonly isAddress: boolean
  readonly minSearchChars: number
}

/** Longer lists are searchable. */
const manyItems = 15

/** A list that is too long to choose from, or that allows other values. */
const isSuggested = ({ type, values }: FormAttributeView): boolean => {
  if (type === 'list') return values.length === 0 || values.length >= mostItems
  return type === 'text-list' || (type === 'text' && values.length > 0)
}

export function RegisterField({ isAddress, minSearchChars, ...props }: RegisterFieldProps) {
  const { t } = useTranslation()
  const { field, id, label, required, value, onChange, onBlur, error } = props
  const shared = { id, label, required, error, onBlur }
  const { type, values, readOnly } = field
  if (readOnly) {
    return <TextInput {...shared} required={false} readOnly value={value} description={t('register.setByOthers')} />
  }
  if (isSuggested(field)) return <SuggestField {...props} minSearchChars={minSearchChars} />
  if (type === 'list') {
    const data = unique(values).map((item) => ({ value: item.value, label: item.name }))
    if (values.length <= manyItems) {
      return (
        <NativeSelect
          {...shared}
          value={value}
          onChange={(event) => onChange(event.currentTarget.value)}
          data={[{ value: '', label: t('register.choose') }, ...data]}
        />
      )
    }
    return (
      <Select
        {...shared}
        searchable
        clearable={!required}
        value={value === '' ? null : value}
        onChange={(chosen) => onChange(chosen ?? '')}
        data={data}
        limit={100}
        placeholder={t('register.choose')}
        nothingFoundMessage={t('register.nothingFound')}
        comboboxProps={{ withinPortal: false }}
      />
    )
  }
  const typed = {
    ...shared,
    value,
    onChange: (event: { readonly currentTarget: { readonly value: string } }) => onChange(event.currentTarget.value),
  }
  if (type === 'text-area') return <Textarea {...typed} autosize minRows={3} maxRows={10} />
  return (
    <TextInput {...typed} {...autoComplete(field.name)} {...(isAddress ? { type: 'email', inputMode: 'email' } : {})} />
  )
}
