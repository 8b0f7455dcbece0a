import { Autocomplete, Loader } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { valuesQuery } from '../../api/register.ts'
import { useTranslation } from '../../app/i18n.tsx'
import type { FieldProps } from './field.tsx'
import { mostItems } from './field-rules.ts'
import { nameOf, unique } from './list-items.ts'

interface SuggestFieldProps extends FieldProps {
  readonly minSearchChars: number
}

/** The most suggestions at once. */
const maxOffers = 100

/** A text field with suggestions: from the list of the form, or searched while typing. */
export function SuggestField({ field, minSearchChars, value, onChange, onBlur, error, ...input }: SuggestFieldProps) {
  const { t } = useTranslation()
  const [text, setText] = useState(() => nameOf(field.values, value))
  const [search] = useDebouncedValue(text.trim(), 250)
  const isSearched = field.values.length === 0 || field.values.length >= mostItems
  const found = useQuery({
    ...valuesQuery(field.name, search),
    enabled: isSearched && Array.from(search).length >= minSearchChars && search.length <= 100,
    placeholderData: (before) => before,
  })
  const items = unique(isSearched ? (found.data ?? []) : field.values)
  const type = (typed: string): void => {
    setText(typed)
    onChange(items.find(({ name }) => name.toLowerCase() === typed.trim().toLowerCase())?.value ?? typed)
  }
  return (
    <Autocomplete
      {...input}
      error={error}
      description={isSearched && minSearchChars > 1 ? t('register.searchHint', { least: minSearchChars }) : undefined}
      value={text}
      onChange={type}
      onOptionSubmit={(chosen) => {
        setText(nameOf(items, chosen))
        onChange(chosen)
      }}
      onBlur={onBlur}
      data={items.map((item) => ({ value: item.value, label: item.name }))}
      limit={maxOffers}
      {...(isSearched ? { filter: ({ options }) => options } : {})}
      rightSection={found.isFetching ? <Loader size="xs" /> : null}
      comboboxProps={{ withinPortal: false }}
    />
  )
}
