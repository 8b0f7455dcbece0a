/** The languages of the portal and of all other pages, each by its own name. */
export const languages = {
  en: 'English',
  de: 'Deutsch',
  es: 'Español',
  fr: 'Français',
  ja: '日本語',
} as const

export type Language = keyof typeof languages

export const isLanguage = (word: string): word is Language => Object.hasOwn(languages, word)

/** The language that the user chose before, or the first one that the browser prefers and that is available. */
export function chooseLanguage(remembered: string | null, preferred: readonly string[]): Language {
  if (remembered !== null && isLanguage(remembered)) return remembered
  for (const tag of preferred) {
    const word = tag.split('-')[0]?.toLowerCase() ?? ''
    if (isLanguage(word)) return word
  }
  return 'en'
}

/** The tags of an Accept-Language header, most preferred first. Malformed ones are skipped. */
export function acceptedLanguages(header: string): string[] {
  return header
    .split(',', 50)
    .flatMap((part) => {
      const [, tag = '', written = '1'] =
        /^\s*([a-z0-9-]{1,35})\s*(?:;\s*q=([01](?:\.\d{0,3})?)\s*)?$/i.exec(part) ?? []
      const weight = Number(written)
      return tag === '' || weight === 0 ? [] : [{ tag, weight }]
    })
    .sort((one, other) => other.weight - one.weight)
    .map(({ tag }) => tag)
}

/** The cookies by which the portal passes the user's choices on to pages without scripts. */
export const choiceCookies = { language: 'gatehouse-language', colorScheme: 'gatehouse-color-scheme' } as const
