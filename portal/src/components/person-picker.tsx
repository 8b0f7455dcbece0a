import { Combobox, Loader, Pill, PillsInput, Text, useCombobox } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { type ClipboardEvent, useState } from 'react'
import { minSearch, searchQuery } from '../api/main.ts'
import { useConfig } from '../app/config.tsx'
import { useTranslation } from '../app/i18n.tsx'
import { isolated } from '../app/isolated.ts'
import { maxPeople, pastedLogins } from './pasted-logins.ts'

/** The names of users that were found in this tab, so that chosen users keep them. */
const found = new Map<string, string>()
const maxFound = 1_000

/** The display name of a chosen user; the login of one who was typed or pasted. */
export const pickedName = (login: string): string => found.get(login) ?? login

interface PersonPickerProps {
  readonly label: string
  readonly value: readonly string[]
  readonly onChange: (logins: readonly string[]) => void
  /** Only one user can be chosen. */
  readonly single?: boolean
  /** The user may type unknown logins. */
  readonly free?: boolean
  readonly error?: string | undefined
}

/** Users by name or login, looked up while typing. A pasted list is taken as it is; the gateway refuses unknown logins. */
export function PersonPicker({ label, value, onChange, single = false, free = false, error }: PersonPickerProps) {
  const { t } = useTranslation()
  const { canSearchPeople } = useConfig()
  const [typed, setTyped] = useState('')
  const [q] = useDebouncedValue(typed.trim(), 200)
  const search = useQuery({ ...searchQuery(q, 'person'), enabled: canSearchPeople && q.length >= minSearch })
  const combobox = useCombobox({ onDropdownClose: () => combobox.resetSelectedOption() })
  const people = (search.data?.people ?? []).filter(({ uid }) => !value.includes(uid))
  const takesTyped = (free || !canSearchPeople) && q !== '' && !value.includes(q)

  const add = (login: string): void => {
    const name = people.find(({ uid }) => uid === login)?.displayName
    if (name !== undefined && found.size < maxFound) found.set(login, name)
    onChange(single ? [login] : [...value, login])
    setTyped('')
    combobox.closeDropdown()
  }
  const paste = (event: ClipboardEvent<HTMLInputElement>): void => {
    const logins = single ? undefined : pastedLogins(event.clipboardData.getData('text'))
    if (logins === undefined) return
    event.preventDefault()
    onChange([...new Set([...value, ...logins])].slice(0, maxPeople))
  }
  const remove = (login: string): void => onChange(value.filter((one) => one !== login))

  return (
    <Combobox store={combobox} onOptionSubmit={add} withinPortal={false}>
      <Combobox.DropdownTarget>
        <PillsInput label={label} error={error} rightSection={search.isFetching ? <Loader size="xs" /> : null}>
          <Pill.Group>
            {value.map((login) => (
              <PickedPerson key={login} login={login} onRemove={() => remove(login)} />
            ))}
            <Combobox.EventsTarget>
              <PillsInput.Field
                aria-label={label}
                placeholder={t('people.search')}
                value={typed}
                maxLength={100}
                onPaste={paste}
                onFocus={() => combobox.openDropdown()}
                onBlur={() => combobox.closeDropdown()}
                onChange={(event) => {
                  setTyped(event.currentTarget.value)
                  combobox.openDropdown()
                  combobox.updateSelectedOptionIndex('active')
                }}
                onKeyDown={(event) => {
                  if (event.key === 'Backspace' && typed === '' && value.length > 0) remove(value.at(-1) ?? '')
                }}
              />
            </Combobox.EventsTarget>
          </Pill.Group>
        </PillsInput>
      </Combobox.DropdownTarget>
      <Combobox.Dropdown hidden={q.length < minSearch && !takesTyped}>
        <Combobox.Options aria-label={label}>
          {people.map(({ uid, displayName }) => (
            <FoundPerson key={uid} uid={uid} displayName={displayName} />
          ))}
          {takesTyped && <Combobox.Option value={q}>{t('people.use', { login: q })}</Combobox.Option>}
          {people.length === 0 && !takesTyped && !search.isFetching && search.error === null && (
            <Combobox.Empty>{t(search.isPaused ? 'offline.waiting' : 'people.none')}</Combobox.Empty>
          )}
        </Combobox.Options>
      </Combobox.Dropdown>
    </Combobox>
  )
}

function PickedPerson({ login, onRemove }: { readonly login: string; readonly onRemove: () => void }) {
  const { t } = useTranslation()
  return (
    <Pill
      withRemoveButton
      onRemove={onRemove}
      removeButtonProps={{
        'aria-label': t('people.remove', { login: pickedName(login) }),
        tabIndex: 0,
        'aria-hidden': false,
      }}
    >
      {isolated(pickedName(login))}
    </Pill>
  )
}

function FoundPerson({ uid, displayName }: { readonly uid: string; readonly displayName: string }) {
  return (
    <Combobox.Option value={uid}>
      <Text size="sm">{isolated(displayName)}</Text>
      <Text size="xs" c="dimmed">
        {isolated(uid)}
      </Text>
    </Combobox.Option>
  )
}
