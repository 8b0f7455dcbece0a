import { createHash } from 'node:crypto'
import { parseColor, type Theme } from '#sdk/http/page-look.ts'
import { black, type Color, contrast, mix, readable, readColor, white, writeColor } from './colors.ts'
import { defaultColors } from './default-colors.ts'

/** The style of pages with one theme. */
interface Sheet {
  readonly style: string
  /** For the content security policy. */
  readonly hash: string
}

/** The grays of the portal. */
const schemes = {
  light: { page: '#f6f7f9', surface: '#ffffff', field: '#ffffff', text: '#1f2228', quiet: '#495057', focus: '#1971c2' },
  dark: { page: '#17191e', surface: '#1f2228', field: '#2a2e36', text: '#d5d8dd', quiet: '#b6bbc3', focus: '#74c0fc' },
} as const

const defaultTheme = {
  main: defaultColors.themePrimaryMain,
  dark: defaultColors.themePrimaryDark,
  error: defaultColors.errorColor,
}

const color = (written: string): Color => readColor(parseColor(written)) ?? black

/** Black or white, for a text on the color. */
const textOn = (background: Color): string =>
  writeColor(contrast(white, background) >= contrast(black, background) ? white : black)

function variables(name: keyof typeof schemes, { main, dark, error = defaultTheme.error }: Theme): string {
  const scheme = schemes[name]
  const surface = color(scheme.surface)
  const button = color(main)
  const pressed = dark === undefined ? mix(button, black, 0.25) : color(dark)
  return Object.entries({
    'color-scheme': name,
    '--page': scheme.page,
    '--surface': scheme.surface,
    '--field': scheme.field,
    '--text': scheme.text,
    '--quiet': scheme.quiet,
    '--focus': scheme.focus,
    '--line': '#868e96',
    '--main': writeColor(button),
    '--on-main': textOn(button),
    '--dark': writeColor(pressed),
    '--on-dark': textOn(pressed),
    '--link': writeColor(readable(button, surface)),
    '--error': writeColor(readable(color(error), surface)),
  })
    .map(([property, value]) => `${property}: ${value}`)
    .join('; ')
}

/** Light or dark as the device says, unless the user chose one in the portal. */
const styleOf = (theme: Theme): string => `
:root { ${variables('light', theme)}; font: 1rem/1.5 system-ui, sans-serif }
@media (prefers-color-scheme: dark) { :root:not([data-scheme=light]) { ${variables('dark', theme)} } }
:root[data-scheme=dark] { ${variables('dark', theme)} }
body { margin: 0; background: var(--page); color: var(--text) }
header { display: flex; align-items: center; gap: .75rem; padding: .9rem 1.25rem; border-bottom: 1px solid color-mix(in srgb, var(--line) 40%, transparent); background: var(--surface); font-weight: 650; overflow-wrap: anywhere }
header img { width: auto; height: 2rem; max-width: 10rem; object-fit: contain }
main { box-sizing: border-box; max-width: 42rem; margin: 2rem auto; padding: 1.75rem; border: 1px solid color-mix(in srgb, var(--line) 40%, transparent); border-radius: .625rem; background: var(--surface); overflow-wrap: anywhere }
main.narrow { max-width: 26rem; margin-top: min(12vh, 6rem) }
h1 { margin: 0 0 1rem; font-size: 1.5rem; line-height: 1.3 }
dt, label { font-weight: 600 }
dd { margin: 0 0 .5rem }
label, textarea, button, input { display: block; font: inherit }
label.check, label.check input { display: inline; font-weight: normal }
textarea, input:not([type=checkbox]):not([type=radio]) { box-sizing: border-box; width: 100%; margin: .25rem 0 1rem; padding: .5rem .7rem; border: 1px solid var(--line); border-radius: .375rem; background: var(--field); color: var(--text) }
input[aria-invalid=true] { border-color: var(--error) }
button { box-sizing: border-box; width: 100%; margin: .75rem 0; padding: .6rem 1.4rem; border: 0; border-radius: .375rem; background: var(--main); color: var(--on-main); font-weight: 600; cursor: pointer }
button:hover { background: var(--dark); color: var(--on-dark) }
button:disabled { opacity: .5; cursor: default }
a { color: var(--link) }
:focus-visible { outline: 2px solid var(--focus); outline-offset: 2px }
[role=alert] { margin: 0 0 1rem; padding: .6rem .8rem; border: 1px solid var(--error); border-radius: .375rem; color: var(--error) }
.links { display: flex; flex-wrap: wrap; gap: .5rem 1.5rem; justify-content: space-between; margin: 1rem 0 0; padding: 0; list-style: none }
#rules { margin: 0; color: var(--quiet) }
summary { cursor: pointer }
@media (max-width: 30rem) { main, main.narrow { margin: 0; border-width: 0 0 1px; border-radius: 0; padding: 1.25rem } }
`

const sheets = new Map<string, Sheet>()

/** Throws an Error for a theme with anything but colors. */
export function sheetOf(theme: Theme = defaultTheme): Sheet {
  const key = JSON.stringify([theme.main, theme.dark, theme.error])
  let sheet = sheets.get(key)
  if (sheet === undefined) {
    const style = styleOf(theme)
    sheet = { style, hash: createHash('sha256').update(style).digest('base64') }
    sheets.set(key, sheet)
  }
  return sheet
}
