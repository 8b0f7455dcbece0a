import { type GatewayRequest, header } from '#sdk/http/http.ts'
import { acceptedLanguages, chooseLanguage, type Language, languages } from './languages.ts'

/** Texts of the configuration in other languages: by language, then by the text as written. */
export type ConfiguredTexts = ReadonlyMap<Language, ReadonlyMap<string, string>>

/** A text of the configuration in the language of its reader; as written without a translation. */
export type Translate = (text: string) => string

/** The languages that texts can be given in. */
export const textLanguages = Object.keys(languages) as readonly Language[]

/** The language that a caller of an API accepts. */
export const acceptedLanguage = (request: Pick<GatewayRequest, 'headers'>): Language =>
  chooseLanguage(null, acceptedLanguages(header(request, 'accept-language') ?? ''))

export function translator(texts: ConfiguredTexts | undefined, language: Language): Translate {
  const known = texts?.get(language)
  return known === undefined ? (text) => text : (text) => known.get(text) ?? text
}

/** Which of the configured texts was meant by a text in any language; undefined for none of them. */
export const originalText = (
  given: string,
  originals: readonly string[],
  texts: ConfiguredTexts = new Map(),
): string | undefined =>
  originals.find((text) => text === given) ??
  originals.find((text) => [...texts.values()].some((known) => known.get(text) === given))
