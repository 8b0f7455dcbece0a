import type { ConfigDocument } from '#config/context/config-document.ts'
import { readYaml } from '#config/context/locate.ts'
import type { Issues, Path } from '#kernel/issues.ts'
import { isJsonObject } from '#kernel/json.ts'
import { type ConfiguredTexts, textLanguages } from '#sdk/page/configured-texts.ts'

/** An annotation `texts.gatehouse.dev/de` holds a YAML map from texts of its object to German ones. */
const prefix = 'texts.gatehouse.dev/'
const maxTexts = 2_000
const maxLength = 10_000

interface TranslatedObject {
  readonly value: unknown
  readonly document: ConfigDocument
}

/**
 * The translations of all objects. One text has one translation, whichever object it is in: two different ones are an
 * error. A translation of a text that its object does not have is a warning, since the text was changed or misspelled.
 */
export function readConfiguredTexts(objects: readonly TranslatedObject[], issues: Issues): ConfiguredTexts {
  const texts = new Map(textLanguages.map((language) => [language, new Map<string, string>()]))
  const places = new Map<string, string>()
  for (const { value, document } of objects) {
    const { metadata, spec } = isJsonObject(value) ? value : {}
    const annotations = isJsonObject(metadata) && isJsonObject(metadata['annotations']) ? metadata['annotations'] : {}
    for (const [key, written] of Object.entries(annotations)) {
      if (!key.startsWith(prefix)) continue
      const path: Path = ['metadata', 'annotations', key]
      const error = (message: string): void => issues.for(document).error(path, message)
      const language = textLanguages.find((one) => one === key.slice(prefix.length))
      if (language === undefined) {
        error(`unknown language "${key.slice(prefix.length)}"; use one of ${textLanguages.join(', ')}`)
        continue
      }
      const known = texts.get(language) ?? new Map<string, string>()
      const used = textsIn(spec)
      for (const [text, translation] of readMap(String(written), error)) {
        if (!used.some((one) => one.includes(text))) {
          issues.for(document).warning(path, `"${shown(text)}" is translated, but is not a text of this object`)
        }
        const place = `${language} ${text}`
        if ((known.get(text) ?? translation) !== translation) {
          error(`"${shown(text)}" has another translation in ${places.get(place)}: use the same one`)
          continue
        }
        known.set(text, translation)
        places.set(place, places.get(place) ?? document.at(path))
      }
    }
  }
  return new Map([...texts].filter(([, known]) => known.size > 0))
}

const shown = (text: string): string => (text.length > 60 ? `${text.slice(0, 60)}…` : text)

function readMap(written: string, error: (message: string) => void): [string, string][] {
  const { documents, problems } = readYaml(written)
  const [document, another] = documents
  const [problem] = problems
  const reported: string[] = problem === undefined ? [] : [problem.message]
  const value = document?.toValue({ text: (text) => text, report: (_path, message) => reported.push(message) })
  const entries = isJsonObject(value) && another === undefined ? Object.entries(value) : undefined
  const texts = entries?.flatMap(([text, translation]): [string, string][] =>
    typeof translation === 'string' && text.length <= maxLength && translation.length <= maxLength
      ? [[text, translation]]
      : [],
  )
  if (reported.length > 0 || texts === undefined || texts.length !== entries?.length || texts.length > maxTexts) {
    const limits = `at most ${maxTexts} texts of ${maxLength} characters`
    error(
      `expected a YAML map from each text to its translation, ${limits}${reported.map((one) => `: ${one}`).join('')}`,
    )
    return []
  }
  return texts
}

/** All texts in a value. The YAML reader has bounded its depth. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : []
}
