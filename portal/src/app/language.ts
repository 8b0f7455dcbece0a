/** The languages that there is a catalogue for, each by its own name. */
export const languages = {
  en: 'English',
  de: 'Deutsch',
  es: 'Español',
  fr: 'Français',
  ja: '日本語',
} as const

export type Language = keyof typeof languages

export const isLanguage = (word: string): word is Language => Object.hasOwn(languages, word)

/** The one that was chosen before, or the first of the browser's that there is. */
export function chooseLanguage(remembered: string | null, preferred: readonly string[]): Language {
  if (remembered !== null && isLanguage(remembered)) return remembered
  for (const tag of preferred) {
    const word = tag.split('-')[0]?.toLowerCase() ?? ''
    if (isLanguage(word)) return word
  }
  return 'en'
}

/** How dates are written: as in the person's own region, where it speaks the language. */
export const localeOf = (language: Language, preferred: readonly string[]): string =>
  preferred.find((tag) => tag.split('-')[0]?.toLowerCase() === language) ?? language
