import * as z from 'zod'

const color = z.string().describe('A color of the theme')

/** The colors of a page. */
export const theme = z.object({
  themePrimaryMain: color,
  themePrimaryDark: color,
  themePrimaryLight: color,
  themeSecondaryMain: color,
  themeSecondaryDark: color,
  themeSecondaryLight: color,
  errorColor: color,
})
