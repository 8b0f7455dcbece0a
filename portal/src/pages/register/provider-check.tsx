import { Text } from '@mantine/core'
import { useEffect, useRef } from 'react'
import type { HumanCheckView } from '#features/registration/contract/register.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { loadProvider, type ProviderKind } from './provider-script.ts'

interface ProviderCheckProps {
  readonly kind: ProviderKind
  readonly check: HumanCheckView
  /** The user solved the check; empty when the token expires. */
  readonly onToken: (token: string) => void
  readonly error: string | undefined
}

/** The widget of a provider. */
export function ProviderCheck({ kind, check, onToken, error }: ProviderCheckProps) {
  const { t, language } = useTranslation()
  const place = useRef<HTMLDivElement>(null)
  const report = useRef(onToken)
  report.current = onToken
  const { siteKey = '', action } = check
  useEffect(() => {
    let isLeft = false
    void loadProvider(kind, siteKey).then((provider) => {
      if (isLeft || place.current === null) return
      const box = document.createElement('div')
      place.current.replaceChildren(box)
      provider.render(box, {
        sitekey: siteKey,
        hl: language,
        language,
        ...(action === undefined ? {} : { action }),
        callback: (token: string) => report.current(token),
        'expired-callback': () => report.current(''),
      })
    })
    return () => {
      isLeft = true
    }
  }, [kind, siteKey, action, language])
  return (
    <div>
      <div ref={place}>
        <Text size="sm" c="dimmed">
          {t('register.checkLoading')}
        </Text>
      </div>
      {error !== undefined && (
        <Text size="sm" c="var(--mantine-color-error)" role="alert">
          {error}
        </Text>
      )}
    </div>
  )
}
