import { type GatewayRequest, header } from '#sdk/http/http.ts'
import de from '#sdk/page/page-texts/de.json' with { type: 'json' }
import en from '#sdk/page/page-texts/en.json' with { type: 'json' }
import es from '#sdk/page/page-texts/es.json' with { type: 'json' }
import fr from '#sdk/page/page-texts/fr.json' with { type: 'json' }
import ja from '#sdk/page/page-texts/ja.json' with { type: 'json' }
import { acceptedLanguages, choiceCookies, chooseLanguage, type Language } from './languages.ts'

export type TextKey = keyof typeof en

/** A text of pages in the language of their reader, with `{name}` replaced by values. It is not escaped. */
export type Texts = (key: TextKey, values?: Readonly<Record<string, string>>) => string

/** The reader of a page, as far as the request describes them. */
export type PageReader = Pick<GatewayRequest, 'headers'>

const catalogs: Readonly<Record<Language, Readonly<Record<TextKey, string>>>> = { de, en, es, fr, ja }

const nobody: PageReader = { headers: {} }

/** The value of a cookie; undefined if it is absent. */
function cookie(reader: PageReader, name: string): string | undefined {
  const pairs = (header(reader, 'cookie') ?? '').split(';', 100).map((pair) => pair.trim())
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1)
}

/** The language chosen in the portal, or the first available one that the browser accepts. */
export const languageOf = (reader: PageReader = nobody): Language =>
  chooseLanguage(
    cookie(reader, choiceCookies.language) ?? null,
    acceptedLanguages(header(reader, 'accept-language') ?? ''),
  )

/** The color scheme chosen in the portal; undefined if the device decides. */
export function schemeOf(reader: PageReader = nobody): 'light' | 'dark' | undefined {
  const chosen = cookie(reader, choiceCookies.colorScheme)
  return chosen === 'light' || chosen === 'dark' ? chosen : undefined
}

/** A language that there are texts in. */
export type TextsLanguage = Language

/** The first that there are texts in, of values as in an Accept-Language header, such as `de-CH, en;q=0.5`. */
export const textsLanguage = (preferred: readonly string[]): TextsLanguage =>
  chooseLanguage(
    null,
    preferred.flatMap((value) => acceptedLanguages(value.replaceAll('_', '-'))),
  )

export const textsFor = (reader?: PageReader): Texts => textsIn(languageOf(reader))

export function textsIn(language: Language): Texts {
  const catalog = catalogs[language]
  return (key, values = {}) => catalog[key].replace(/\{(\w+)\}/g, (written, name: string) => values[name] ?? written)
}

/** A time to wait, such as "45 seconds" or "3 minutes", in the language of the reader. */
export const durationText = (seconds: number, reader?: PageReader): string => durationIn(seconds, languageOf(reader))

export function durationIn(seconds: number, language: Language): string {
  const [value, unit] = seconds < 90 ? [seconds, 'second'] : [Math.ceil(seconds / 60), 'minute']
  return new Intl.NumberFormat(language, { style: 'unit', unit, unitDisplay: 'long' }).format(Number(value))
}
