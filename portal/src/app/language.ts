import type { Language } from '#sdk/page/languages.ts'

/** The locale of dates: the user's own region, if it uses the language. */
export const localeOf = (language: Language, preferred: readonly string[]): string =>
  preferred.find((tag) => tag.split('-')[0]?.toLowerCase() === language) ?? language
