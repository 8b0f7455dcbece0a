import { localStorageColorSchemeManager, MantineProvider } from '@mantine/core'
import { type ReactNode, useMemo } from 'react'
import { settings } from './settings.ts'
import { type PortalColours, themeOf, variablesOf } from './theme.ts'

const colourSchemeManager = localStorageColorSchemeManager({ key: 'gatehouse.colour-scheme' })

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
