import { ActionIcon } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { MarkedKind } from '#features/portal/contract/main.ts'
import { marksQuery, useMark } from '../api/marks.ts'
import { useTranslation } from '../app/i18n.tsx'
import { Icon } from './icon.tsx'
import { useSay } from './notices.tsx'
import { useFailureText } from './states.tsx'

interface StarButtonProps {
  readonly kind: MarkedKind
  readonly name: string
  readonly label: string
}

/** Adds a link or a workflow to the favorites, or removes it. */
export function StarButton({ kind, name, label }: StarButtonProps) {
  const { t } = useTranslation()
  const say = useSay()
  const failureText = useFailureText()
  const marks = useQuery(marksQuery)
  const mark = useMark()
  const isOn = marks.data?.favorites.some((one) => one.kind === kind && one.name === name) ?? false
  return (
    <ActionIcon
      variant="subtle"
      color={isOn ? 'secondary' : 'gray'}
      aria-pressed={isOn}
      aria-label={t('favorite.toggle', { name: label })}
      disabled={marks.data === undefined}
      onClick={() =>
        mark.mutate({ kind, name, label, on: !isOn }, { onError: (error) => say(failureText(error), 'bad') })
      }
    >
      <Icon name="star" size={18} filled={isOn} />
    </ActionIcon>
  )
}
