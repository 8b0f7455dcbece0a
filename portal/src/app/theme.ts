import {
  type CSSVariablesResolver,
  createTheme,
  type MantineColorsTuple,
  type MantineThemeOverride,
} from '@mantine/core'
import type { MainConfig } from '#contract/main.ts'
import { black, type Colour, mix, readable, readColour, white, writeColour } from './colours.ts'

/** The colors of a configuration. */
export type PortalColours = Pick<
  MainConfig,
  | 'themePrimaryMain'
  | 'themePrimaryDark'
  | 'themePrimaryLight'
  | 'themeSecondaryMain'
  | 'themeSecondaryDark'
  | 'themeSecondaryLight'
  | 'errorColor'
>

export const defaultColours: PortalColours = {
  themePrimaryMain: '#AC1622',
  themePrimaryDark: '#780f17',
  themePrimaryLight: '#bc444e',
  themeSecondaryMain: '#16aca0',
  themeSecondaryDark: '#0f7870',
  themeSecondaryLight: '#44bcb3',
  errorColor: '#ff1744',
}

/** Backgrounds of pages, light and dark; tints of the primary color are on them. */
const surfaces = { light: white, dark: [36, 36, 36] as Colour }
/** Backgrounds of fields, on which errors are written. */
const fields = { light: white, dark: [46, 46, 46] as Colour }

const colour = (written: string, fallback: string): Colour => readColour(written) ?? readColour(fallback) ?? black

/** Ten shades from the three configured ones; the sixth is the main one. */
export function shades(light: Colour, main: Colour, dark: Colour): MantineColorsTuple {
  const tint = (share: number): string => writeColour(mix(main, white, share))
  return [
    tint(0.92),
    tint(0.84),
    tint(0.68),
    tint(0.5),
    writeColour(mix(light, white, 0.2)),
    writeColour(light),
    writeColour(main),
    writeColour(mix(main, dark, 0.5)),
    writeColour(dark),
    writeColour(mix(dark, black, 0.25)),
  ]
}

export function themeOf(given: PortalColours): MantineThemeOverride {
  const of = (key: keyof PortalColours): Colour => colour(given[key], defaultColours[key])
  return createTheme({
    colors: {
      primary: shades(of('themePrimaryLight'), of('themePrimaryMain'), of('themePrimaryDark')),
      secondary: shades(of('themeSecondaryLight'), of('themeSecondaryMain'), of('themeSecondaryDark')),
    },
    primaryColor: 'primary',
    primaryShade: { light: 6, dark: 6 },
    // Black is more readable above it, white below it; both have at least 4.5 there.
    autoContrast: true,
    luminanceThreshold: 0.179,
    fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Noto Sans JP", sans-serif',
    defaultRadius: 'md',
    cursorType: 'pointer',
    respectReducedMotion: true,
    focusRing: 'auto',
  })
}

/** Text colors that are readable on pages and tints, with any configuration. */
export function variablesOf(given: PortalColours): CSSVariablesResolver {
  const primary = colour(given.themePrimaryMain, defaultColours.themePrimaryMain)
  const error = colour(given.errorColor, defaultColours.errorColor)
  const scheme = (surface: Colour, field: Colour, tint: number): Record<string, string> => {
    const tinted = mix(surface, primary, tint)
    return {
      '--mantine-color-anchor': writeColour(readable(primary, surface)),
      '--mantine-color-error': writeColour(readable(error, field)),
      '--mantine-color-primary-light': writeColour(mix(surface, primary, tint - 0.04)),
      '--mantine-color-primary-light-hover': writeColour(tinted),
      '--mantine-color-primary-light-color': writeColour(readable(primary, tinted)),
      '--mantine-color-primary-outline': writeColour(readable(primary, surface)),
    }
  }
  return () => ({
    variables: {},
    light: {
      ...scheme(surfaces.light, fields.light, 0.12),
      '--mantine-color-dimmed': '#495057',
      '--mantine-color-placeholder': '#5c636a',
      '--portal-good': '#1b6e35',
      '--portal-bad': writeColour(readable(error, surfaces.light)),
      '--portal-waiting': '#8a5200',
    },
    dark: {
      ...scheme(surfaces.dark, fields.dark, 0.24),
      '--mantine-color-dimmed': '#b8b8b8',
      '--mantine-color-placeholder': '#a8a8a8',
      '--portal-good': '#69db7c',
      '--portal-bad': writeColour(readable(error, surfaces.dark)),
      '--portal-waiting': '#ffc078',
    },
  })
}
