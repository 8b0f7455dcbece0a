import { localStorageColorSchemeManager, type MantineColorSchemeManager, MantineProvider } from '@mantine/core'
import { type ReactNode, useMemo } from 'react'
import { choiceCookies } from '#sdk/page/languages.ts'
import { writeChoiceCookie } from './choice-cookie.ts'
import { settings } from './settings.ts'
import { type PortalColors, themeOf, variablesOf } from './theme.ts'

const remembered = localStorageColorSchemeManager({ key: 'gatehouse.color-scheme' })

/** Remembers the choice, for the sign-in pages too. */
const colorSchemeManager: MantineColorSchemeManager = {
  ...remembered,
  set: (scheme) => {
    remembered.set(scheme)
    writeChoiceCookie(choiceCookies.colorScheme, scheme === 'auto' ? '' : scheme)
  },
}

interface ThemedProps {
  readonly colors: PortalColors
  readonly children: ReactNode
}

/** Gives its children the colors of a configuration, light or dark. */
export function Themed({ colors, children }: ThemedProps) {
  const theme = useMemo(() => themeOf(colors), [colors])
  const variables = useMemo(() => variablesOf(colors), [colors])
  return (
    <MantineProvider
      theme={theme}
      cssVariablesResolver={variables}
      defaultColorScheme="auto"
      colorSchemeManager={colorSchemeManager}
      getStyleNonce={() => settings.nonce}
    >
      {children}
    </MantineProvider>
  )
}
