import { Button } from '@mantine/core'
import { useEffect, useState } from 'react'
import { useTranslation } from '../app/i18n.tsx'
import { Icon } from './icon.tsx'
import { useSay } from './notices.tsx'

interface CopyButtonProps {
  readonly value: string
  /** The copied value's name, for users who do not see the button's context. */
  readonly label: string
}

const shownMillis = 2_000

export function CopyButton({ value, label }: CopyButtonProps) {
  const { t } = useTranslation()
  const say = useSay()
  const [isCopied, setCopied] = useState(false)
  useEffect(() => {
    if (!isCopied) return undefined
    const timer = setTimeout(() => setCopied(false), shownMillis)
    return () => clearTimeout(timer)
  }, [isCopied])
  const copy = async (): Promise<void> => {
    if (await copyText(value)) setCopied(true)
    else say(t('copy.failed'), 'bad')
  }
  return (
    <Button
      size="xs"
      variant="default"
      leftSection={<Icon name={isCopied ? 'check' : 'copy'} size={16} />}
      aria-label={t(isCopied ? 'copy.doneWhat' : 'copy.what', { what: label })}
      onClick={() => void copy()}
    >
      {t(isCopied ? 'copy.done' : 'copy.copy')}
    </Button>
  )
}

/** Also works without TLS, where browsers have no clipboard. */
async function copyText(value: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(value)
    return true
  } catch {
    return copyBySelection(value)
  }
}

function copyBySelection(value: string): boolean {
  const field = document.createElement('textarea')
  field.value = value
  field.className = 'off-screen'
  const focused = document.activeElement
  document.body.append(field)
  field.select()
  const isDone = document.execCommand('copy')
  field.remove()
  if (focused instanceof HTMLElement) focused.focus()
  return isDone
}
