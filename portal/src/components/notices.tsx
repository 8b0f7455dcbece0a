import { Notification, Stack } from '@mantine/core'
import { createContext, type ReactNode, use, useCallback, useRef, useState } from 'react'
import { useTranslation } from '../app/i18n.tsx'
import { Icon } from './icon.tsx'

interface Notice {
  readonly id: number
  readonly text: string
  readonly bad: boolean
}

/** Success messages disappear automatically; errors stay until the user closes them. */
const shownMillis = 6_000

type Say = (text: string, kind?: 'good' | 'bad') => void

const Context = createContext<Say>(() => undefined)

/** Shows a message that needs no answer, also to screen readers. */
export const useSay = (): Say => use(Context)

export function NoticeProvider({ children }: { readonly children: ReactNode }) {
  const { t } = useTranslation()
  const [notices, setNotices] = useState<readonly Notice[]>([])
  const last = useRef(0)
  const remove = useCallback((id: number) => setNotices((all) => all.filter((one) => one.id !== id)), [])
  const say = useCallback<Say>(
    (text, kind = 'good') => {
      last.current += 1
      const id = last.current
      setNotices((all) => [...all.slice(-3), { id, text, bad: kind === 'bad' }])
      if (kind === 'good') setTimeout(() => remove(id), shownMillis)
    },
    [remove],
  )
  return (
    <Context value={say}>
      {children}
      <Stack className="notices" gap="xs" role="status" aria-live="polite">
        {notices.map(({ id, text, bad }) => (
          <Notification
            key={id}
            withBorder
            color={bad ? 'red' : 'green'}
            icon={<Icon name={bad ? 'warning' : 'check'} size={18} />}
            onClose={() => remove(id)}
            closeButtonProps={{ 'aria-label': t('action.close') }}
          >
            {text}
          </Notification>
        ))}
      </Stack>
    </Context>
  )
}
