import { type PageLook, parseColor, type Theme } from '#sdk/http/page-look.ts'
import { parsed } from '#sdk/module/parameter-types.ts'
import { defaultColors } from '#sdk/page/default-colors.ts'

/** The parameters for the color of pages that usually look like the portal. */
export const pageThemeParameters = {
  themePrimaryMain: parsed('color', parseColor, {
    about: 'The color of the page, as `#rrggbb`; that of the portal of this host when absent.',
  }),
  themePrimaryDark: parsed('color', parseColor, { about: 'Its darker shade; made from it when absent.' }),
}

/** Undefined if the page looks like the portal. */
export function pageTheme({
  themePrimaryMain: main,
  themePrimaryDark: dark,
}: {
  readonly themePrimaryMain: string | undefined
  readonly themePrimaryDark: string | undefined
}): Theme | undefined {
  return main === undefined ? undefined : { main, dark }
}

interface Branding {
  readonly headerTitle: string
  readonly themePrimaryMain: string
  readonly themePrimaryDark: string
  readonly errorColor: string
}

/** The look of pages without scripts, from the parameters of the portal. As there, a main color alone gets its shade. */
export function portalLook({ headerTitle, themePrimaryMain, themePrimaryDark, errorColor }: Branding): PageLook {
  const isDerived =
    themePrimaryMain !== defaultColors.themePrimaryMain && themePrimaryDark === defaultColors.themePrimaryDark
  const theme = { main: opaque(themePrimaryMain), error: opaque(errorColor) }
  return { name: headerTitle, theme: isDerived ? theme : { ...theme, dark: opaque(themePrimaryDark) } }
}

/** `#rgba` and `#rrggbbaa` without the opacity. */
const opaque = (color: string): string => color.slice(0, color.length < 7 ? 4 : 7)
