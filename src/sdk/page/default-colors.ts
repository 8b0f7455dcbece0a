/** The colors of pages whose configuration sets none: neutral, so that none looks like an error or a success. */
export const defaultColors = {
  themePrimaryMain: '#3b5bdb',
  themePrimaryDark: '#2c44a8',
  themePrimaryLight: '#5c7cfa',
  themeSecondaryMain: '#0b7285',
  themeSecondaryDark: '#095c6b',
  themeSecondaryLight: '#1098ad',
  errorColor: '#c92a2a',
} as const
