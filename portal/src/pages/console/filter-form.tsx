import { Button, Group, NativeSelect, TextInput } from '@mantine/core'
import { useState } from 'react'
import { useTranslation } from '../../app/i18n.tsx'
import { fieldValue } from '../../components/field-time.ts'
import { Icon } from '../../components/icon.tsx'

export interface FilterField<N extends string> {
  readonly name: N
  readonly label: string
  /** A time is chosen in the user's time zone and sent as ISO 8601. */
  readonly kind?: 'text' | 'time'
  /** The choices; the field is a text if absent. */
  readonly options?: readonly { readonly value: string; readonly label: string }[]
}

type Values<N extends string> = { readonly [name in N]?: string | undefined }

interface FilterFormProps<N extends string> {
  readonly fields: readonly FilterField<N>[]
  /** The filter in use. */
  readonly values: Values<N>
  readonly onApply: (values: Values<N>) => void
}

/** The filter of a list, which applies when the user submits it. */
export function FilterForm<N extends string>({ fields, values, onApply }: FilterFormProps<N>) {
  const { t } = useTranslation()
  const [draft, setDraft] = useState<Values<N>>(values)
  const [shown, setShown] = useState(JSON.stringify(values))
  // A filter that came with the address, or was removed, replaces what was typed. The focus stays.
  if (shown !== JSON.stringify(values)) {
    setShown(JSON.stringify(values))
    setDraft(values)
  }
  const isEmpty = fields.every(({ name }) => (values[name] ?? '') === '')
  const set = (name: N, value: string): void => setDraft((before) => ({ ...before, [name]: value }))
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        onApply(draft)
      }}
    >
      <Group gap="sm" align="end">
        {fields.map(({ name, label, kind, options }) =>
          options !== undefined ? (
            <NativeSelect
              key={name}
              label={label}
              value={draft[name] ?? ''}
              onChange={(event) => set(name, event.currentTarget.value)}
              data={[...options]}
            />
          ) : kind === 'time' ? (
            <TextInput
              key={name}
              label={label}
              type="datetime-local"
              value={draft[name] === undefined || draft[name] === '' ? '' : fieldValue(new Date(draft[name]))}
              onChange={(event) => set(name, isoTime(event.currentTarget.value))}
            />
          ) : (
            <TextInput
              key={name}
              label={label}
              maxLength={200}
              value={draft[name] ?? ''}
              onChange={(event) => set(name, event.currentTarget.value)}
            />
          ),
        )}
        <Button type="submit" leftSection={<Icon name="search" size={18} />}>
          {t('console.search')}
        </Button>
        {!isEmpty && (
          <Button variant="subtle" onClick={() => onApply({})}>
            {t('action.clear')}
          </Button>
        )}
      </Group>
    </form>
  )
}

const isoTime = (written: string): string => {
  const time = new Date(written)
  return Number.isNaN(time.getTime()) ? '' : time.toISOString()
}

/** The texts that are not empty, for an address. */
export const filled = <N extends string>(values: Values<N>): Values<N> =>
  Object.fromEntries(
    Object.entries<string | undefined>(values)
      .map(([name, value]) => [name, value?.trim()])
      .filter(([, value]) => value !== undefined && value !== ''),
  ) as Values<N>

/** A time of an address that the form can show. */
export const shownTime = (text: string | undefined): string | undefined =>
  text !== undefined && /^\d{4}-/.test(text) && !Number.isNaN(Date.parse(text)) ? text : undefined
