import { parsed } from '#sdk/module/parameter-types.ts'
import { defaultColors } from '#sdk/page/default-colors.ts'

/** The parameters for the colors of the portal. */
export function themeParameters(parse = parseColor) {
  const color = (name: keyof typeof defaultColors, about: string) =>
    parsed('color', parse, { about: `Color of ${about}.`, fallback: defaultColors[name] as string })
  return {
    themePrimaryMain: color('themePrimaryMain', 'buttons, links and selected items'),
    themePrimaryDark: color('themePrimaryDark', 'buttons under the pointer'),
    themePrimaryLight: color('themePrimaryLight', 'tints of the primary color'),
    themeSecondaryMain: color('themeSecondaryMain', 'accents: avatars, tiles without an icon, favorites'),
    themeSecondaryDark: color('themeSecondaryDark', 'darker accents'),
    themeSecondaryLight: color('themeSecondaryLight', 'tints of the accents'),
    errorColor: color('errorColor', 'errors and of actions that cannot be undone'),
  }
}

function parseColor(written: string): string {
  if (/^#(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})$/i.test(written)) return written
  throw new Error(`must be a color such as #3b5bdb, not "${written}"`)
}
