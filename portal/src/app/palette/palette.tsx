import { Modal, Text, TextInput } from '@mantine/core'
import { Fragment, type KeyboardEvent, useEffect, useId, useRef, useState } from 'react'
import { Icon } from '../../components/icon.tsx'
import { useOnline } from '../../components/online.ts'
import { Failure } from '../../components/states.tsx'
import { useTranslation } from '../i18n.tsx'
import { isolated } from '../isolated.ts'
import type { OverlayProps } from '../overlays.tsx'
import { type PaletteGroup, type PaletteItem, resultsFor, stepFrom } from './palette-items.ts'
import { usePaletteGroups } from './use-palette-groups.ts'
import './palette.css'

/** Searches pages, links, the catalog, the user's requests and people, and opens the chosen result. */
export function Palette({ onClose }: OverlayProps) {
  const { t, tn } = useTranslation()
  const [query, setQuery] = useState('')
  const [active, setActive] = useState(0)
  const list = useId()
  const { groups, isPending, error } = usePaletteGroups(query)
  const results = resultsFor(query, groups)
  const items = results.flatMap((group) => group.items)
  const at = Math.min(active, items.length - 1)
  const choose = (item: PaletteItem | undefined): void => {
    if (item === undefined) return
    onClose('chosen')
    item.open()
  }
  const onKeyDown = keyHandler({
    ArrowDown: () => setActive(stepFrom(at, 1, items.length)),
    ArrowUp: () => setActive(stepFrom(at, -1, items.length)),
    Enter: () => choose(items[at]),
  })
  const hasItems = items.length > 0
  const isOnline = useOnline()
  const status = isPending
    ? t(isOnline ? 'state.loading' : 'offline.waiting')
    : hasItems
      ? tn('palette.results', items.length)
      : error === null
        ? t('home.nothingFound', { query })
        : ''
  return (
    <Modal
      opened
      onClose={() => onClose('dismissed')}
      centered={false}
      yOffset="10vh"
      size="lg"
      title={t('palette.title')}
      returnFocus={false}
      closeButtonProps={{ 'aria-label': t('action.close') }}
    >
      <TextInput
        role="combobox"
        aria-label={t('palette.title')}
        aria-expanded={hasItems}
        aria-autocomplete="list"
        aria-controls={hasItems ? list : undefined}
        aria-activedescendant={hasItems ? optionId(list, at) : undefined}
        placeholder={t('palette.placeholder')}
        autoComplete="off"
        spellCheck={false}
        maxLength={100}
        value={query}
        leftSection={<Icon name="search" size={18} />}
        onChange={(event) => {
          setQuery(event.currentTarget.value)
          setActive(0)
        }}
        onKeyDown={onKeyDown}
        data-autofocus
      />
      {hasItems && (
        <Results
          id={list}
          results={results}
          active={at}
          label={t('palette.title')}
          onPoint={setActive}
          onChoose={choose}
        />
      )}
      {error !== null && <Failure error={error} />}
      <Text size="sm" c="dimmed" mt="xs" role="status">
        {status}
      </Text>
    </Modal>
  )
}

/** Not while a character is being composed: the keys are then those of the input method. */
const keyHandler =
  (keys: Readonly<Record<string, () => void>>) =>
  (event: KeyboardEvent): void => {
    const act = event.nativeEvent.isComposing ? undefined : keys[event.key]
    if (act === undefined) return
    event.preventDefault()
    act()
  }

const optionId = (list: string, index: number): string => `${list}-${index}`

interface ResultsProps {
  readonly id: string
  readonly label: string
  readonly results: readonly PaletteGroup[]
  readonly active: number
  readonly onPoint: (index: number) => void
  readonly onChoose: (item: PaletteItem) => void
}

/** The listbox of the field above, which keeps the focus. */
function Results({ id, label, results, active, onPoint, onChoose }: ResultsProps) {
  const { t } = useTranslation()
  const list = useRef<HTMLDivElement>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: the active option stays in view
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' })
  }, [active, results])
  let index = -1
  return (
    <div ref={list} id={id} role="listbox" aria-label={label} className="palette-list">
      {results.map(({ title, items }) => (
        <Fragment key={title}>
          {/* biome-ignore lint/a11y/useSemanticElements: a fieldset can't be part of a listbox */}
          <div role="group" aria-labelledby={`${id}-${title}`}>
            <div id={`${id}-${title}`} role="presentation" className="palette-group">
              {t(title)}
            </div>
            {items.map((item) => {
              index += 1
              const own = index
              return (
                // biome-ignore lint/a11y/useFocusableInteractive: the field keeps the focus and names the active option
                // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the field
                <div
                  key={item.key}
                  id={optionId(id, own)}
                  role="option"
                  aria-selected={own === active}
                  className="palette-option"
                  onMouseMove={() => onPoint(own)}
                  onMouseDown={(event) => event.preventDefault()}
                  onClick={() => onChoose(item)}
                >
                  <Icon name={item.icon} size={18} />
                  <span className="palette-text">
                    <span className="palette-label">{isolated(item.label)}</span>
                    {item.hint !== undefined && item.hint !== '' && (
                      <span className="palette-hint">{isolated(item.hint)}</span>
                    )}
                  </span>
                </div>
              )
            })}
          </div>
        </Fragment>
      ))}
    </div>
  )
}
