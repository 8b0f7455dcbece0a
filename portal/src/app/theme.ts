import {
  Checkbox,
  Collapse,
  type CSSVariablesResolver,
  createTheme,
  type MantineColorsTuple,
  type MantineThemeOverride,
  Modal,
  Paper,
} from '@mantine/core'
import type { MainConfig } from '#features/portal/contract/main.ts'
import { black, type Color, mix, readable, readColor, white, writeColor } from '#sdk/page/colors.ts'
import { defaultColors } from '#sdk/page/default-colors.ts'

/** The colors of a configuration. */
export type PortalColors = Pick<MainConfig, keyof typeof defaultColors>

export const portalColors: PortalColors = defaultColors

/** Meanings that no configuration changes, so that a success never has the color of an error. */
const meanings = { success: '#1f7a3d', warning: '#b35c00' }

/** The grays of the dark scheme, from text to the page; Mantine expects these ten steps. */
const grays: MantineColorsTuple = [
  '#d5d8dd',
  '#b6bbc3',
  '#949ba6',
  '#6e7682',
  '#434954',
  '#343943',
  '#2a2e36',
  '#1f2228',
  '#17191e',
  '#101216',
]

/** Backgrounds: of the page, of what lies on it, and of fields. */
interface Surfaces {
  readonly page: Color
  readonly surface: Color
  readonly field: Color
}

/** The same in both schemes: a page, a little darker than the cards on it. */
export const surfaces: Readonly<Record<'light' | 'dark', Surfaces>> = {
  light: { page: [246, 247, 249], surface: white, field: white },
  dark: { page: [23, 25, 30], surface: [31, 34, 40], field: [42, 46, 54] },
}

/** Secondary text, and quiet buttons. */
const dimmed = { light: '#495057', dark: '#b6bbc3' }

const color = (written: string, fallback: string): Color => readColor(written) ?? readColor(fallback) ?? black

interface Named {
  readonly light: Color
  readonly main: Color
  readonly dark: Color
}

/** The shades of a color of which only the main one is known. */
const shadesOf = (main: Color): Named => ({ light: mix(main, white, 0.25), main, dark: mix(main, black, 0.25) })

/** A theme color with its shades. If only its main shade is configured, the others are made from that one. */
function configured(given: PortalColors, name: 'Primary' | 'Secondary'): Named {
  const keys = [`theme${name}Light`, `theme${name}Main`, `theme${name}Dark`] as const
  const [light, main, dark] = keys.map((key) => color(given[key], defaultColors[key])) as [Color, Color, Color]
  const [lightKey, mainKey, darkKey] = keys
  const derived = shadesOf(main)
  const isOwn = given[mainKey] !== defaultColors[mainKey]
  return {
    light: isOwn && given[lightKey] === defaultColors[lightKey] ? derived.light : light,
    main,
    dark: isOwn && given[darkKey] === defaultColors[darkKey] ? derived.dark : dark,
  }
}

/** The colors by the names that components use; `red`, `green` and `yellow` are errors, successes and warnings. */
function palette(given: PortalColors): Readonly<Record<string, Named>> {
  return {
    primary: configured(given, 'Primary'),
    secondary: configured(given, 'Secondary'),
    red: shadesOf(color(given.errorColor, defaultColors.errorColor)),
    green: shadesOf(color(meanings.success, '')),
    yellow: shadesOf(color(meanings.warning, '')),
  }
}

/** Ten shades from three; the seventh is the main one. */
export function shades({ light, main, dark }: Named): MantineColorsTuple {
  const tint = (share: number): string => writeColor(mix(main, white, share))
  return [
    tint(0.92),
    tint(0.84),
    tint(0.68),
    tint(0.5),
    writeColor(mix(light, white, 0.2)),
    writeColor(light),
    writeColor(main),
    writeColor(mix(main, dark, 0.5)),
    writeColor(dark),
    writeColor(mix(dark, black, 0.25)),
  ]
}

/** Type, spacing and corners of every component. */
export function themeOf(given: PortalColors): MantineThemeOverride {
  const colors = Object.entries(palette(given)).map(([name, named]) => [name, shades(named)])
  return createTheme({
    colors: { ...Object.fromEntries(colors), dark: grays },
    primaryColor: 'primary',
    primaryShade: { light: 6, dark: 6 },
    // Black is more readable above it, white below it; both have at least 4.5 there.
    autoContrast: true,
    luminanceThreshold: 0.179,
    fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Noto Sans JP", sans-serif',
    headings: {
      fontWeight: '650',
      sizes: {
        h1: { fontSize: '1.75rem', lineHeight: '1.25' },
        h2: { fontSize: '1.5rem', lineHeight: '1.3' },
        h3: { fontSize: '1.25rem', lineHeight: '1.35' },
        h4: { fontSize: '1.125rem', lineHeight: '1.4' },
        h5: { fontSize: '1rem', lineHeight: '1.45' },
        h6: { fontSize: '0.875rem', lineHeight: '1.45' },
      },
    },
    radius: { xs: '0.125rem', sm: '0.25rem', md: '0.375rem', lg: '0.625rem', xl: '2rem' },
    defaultRadius: 'md',
    cursorType: 'pointer',
    respectReducedMotion: true,
    focusRing: 'auto',
    components: {
      // What is below would move under the pointer.
      Collapse: Collapse.extend({ defaultProps: { transitionDuration: 0 } }),
      Checkbox: Checkbox.extend({ defaultProps: { radius: 'sm' } }),
      Modal: Modal.extend({ defaultProps: { radius: 'lg', centered: true, overlayProps: { backgroundOpacity: 0.5 } } }),
      // The title of a dialog is not the banner of the page.
      ModalHeader: { defaultProps: { role: 'presentation' } },
      Paper: Paper.extend({ defaultProps: { radius: 'lg' } }),
    },
  })
}

/** Text colors that are readable on pages, cards and tints, with any configuration. */
export function variablesOf(given: PortalColors): CSSVariablesResolver {
  const colors = palette(given)
  const scheme = (name: 'light' | 'dark'): Record<string, string> => {
    const { page, surface, field } = surfaces[name]
    // Light text is hardest to read on the lightest background, and dark text on the darkest.
    const hardest = name === 'light' ? page : field
    const share = name === 'light' ? 0.12 : 0.24
    const text = (color: Color): string => writeColor(readable(color, hardest))
    const variables: Record<string, string> = {
      '--portal-page': writeColor(page),
      '--portal-focus': name === 'light' ? '#1971c2' : '#74c0fc',
      '--mantine-color-dimmed': dimmed[name],
      '--mantine-color-gray-light-color': dimmed[name],
      '--mantine-color-placeholder': name === 'light' ? '#5c636a' : '#a9afb9',
    }
    for (const [color, { main }] of Object.entries(colors)) {
      const tinted = mix(hardest, main, share)
      variables[`--mantine-color-${color}-light`] = writeColor(mix(surface, main, share - 0.04))
      variables[`--mantine-color-${color}-light-hover`] = writeColor(mix(surface, main, share))
      variables[`--mantine-color-${color}-light-color`] = writeColor(readable(main, tinted))
      variables[`--mantine-color-${color}-outline`] = text(main)
      variables[`--mantine-color-${color}-text`] = text(main)
    }
    const of = (color: string): string => variables[`--mantine-color-${color}-text`] ?? ''
    return {
      ...variables,
      '--mantine-color-anchor': of('primary'),
      '--mantine-color-error': of('red'),
      '--portal-good': of('green'),
      '--portal-bad': of('red'),
      '--portal-waiting': of('yellow'),
    }
  }
  return () => ({ variables: {}, light: scheme('light'), dark: scheme('dark') })
}
