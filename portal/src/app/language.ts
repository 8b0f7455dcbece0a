/** The available languages, each by its own name. */
export const languages = {
  en: 'English',
  de: 'Deutsch',
  es: 'Español',
  fr: 'Français',
  ja: '日本語',
} as const

export type Language = keyof typeof languages

export const isLanguage = (word: string): word is Language => Object.hasOwn(languages, word)

/** The language that the user chose before, or the browser's first available one. */
export function chooseLanguage(remembered: string | null, preferred: readonly string[]): Language {
  if (remembered !== null && isLanguage(remembered)) return remembered
  for (const tag of preferred) {
    const word = tag.split('-')[0]?.toLowerCase() ?? ''
    if (isLanguage(word)) return word
  }
  return 'en'
}

/** The locale of dates: the user's own region, if it uses the language. */
export const localeOf = (language: Language, preferred: readonly string[]): string =>
  preferred.find((tag) => tag.split('-')[0]?.toLowerCase() === language) ?? language
