import { localStorageColorSchemeManager, type MantineColorSchemeManager, MantineProvider } from '@mantine/core'
import { type ReactNode, useMemo } from 'react'
import { choiceCookies } from '#sdk/page/languages.ts'
import { writeChoiceCookie } from './choice-cookie.ts'
import { settings } from './settings.ts'
import { type PortalColours, themeOf, variablesOf } from './theme.ts'

const remembered = localStorageColorSchemeManager({ key: 'gatehouse.colour-scheme' })

/** Remembers the choice, for the sign-in pages too. */
const colourSchemeManager: MantineColorSchemeManager = {
  ...remembered,
  set: (scheme) => {
    remembered.set(scheme)
    writeChoiceCookie(choiceCookies.colourScheme, scheme === 'auto' ? '' : scheme)
  },
}

interface ThemedProps {
  readonly colours: PortalColours
  readonly children: ReactNode
}

/** Gives its children the colors of a configuration, light or dark. */
export function Themed({ colours, children }: ThemedProps) {
  const theme = useMemo(() => themeOf(colours), [colours])
  const variables = useMemo(() => variablesOf(colours), [colours])
  return (
    <MantineProvider
      theme={theme}
      cssVariablesResolver={variables}
      defaultColorScheme="auto"
      colorSchemeManager={colourSchemeManager}
      getStyleNonce={() => settings.nonce}
    >
      {children}
    </MantineProvider>
  )
}
