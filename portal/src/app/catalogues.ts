import type { Language } from '#contract/languages.ts'
import type { Catalogue } from './messages.ts'
import { part } from './part.ts'

type Texts = () => Promise<{ readonly default: Readonly<Record<string, string>> }>

/** The texts of all pages, and those of the pages of administrators, which no one else loads. */
const files: Readonly<Record<Language, { readonly all: Texts; readonly console: Texts }>> = {
  en: { all: () => import('../i18n/en.json'), console: () => import('../i18n/console/en.json') },
  de: { all: () => import('../i18n/de.json'), console: () => import('../i18n/console/de.json') },
  es: { all: () => import('../i18n/es.json'), console: () => import('../i18n/console/es.json') },
  fr: { all: () => import('../i18n/fr.json'), console: () => import('../i18n/console/fr.json') },
  ja: { all: () => import('../i18n/ja.json'), console: () => import('../i18n/console/ja.json') },
}

let needsConsole = false
let shown: { readonly language: Language; readonly catalogue: Catalogue } | undefined

/** The texts of a language, with those of the console once a page of it was opened. */
export async function loadCatalogue(language: Language): Promise<Catalogue> {
  const { all, console } = files[language]
  const texts = await Promise.all([part(all)(), ...(needsConsole ? [part(console)()] : [])])
  return Object.assign({}, ...texts.map((one) => one.default))
}

/** Says which catalogue the portal shows from now on. */
export const showCatalogue = (language: Language, catalogue: Catalogue): void => {
  shown = { language, catalogue }
}

/** Loads a page of administrators together with its texts. */
export const consolePart = <T>(load: () => Promise<T>): (() => Promise<T>) => {
  const page = part(load)
  return async () => (await Promise.all([page(), addConsoleTexts()]))[0]
}

async function addConsoleTexts(): Promise<void> {
  needsConsole = true
  // The user may choose another language meanwhile.
  for (let before: typeof shown; before !== shown; ) {
    before = shown
    if (before !== undefined) {
      Object.assign(before.catalogue, (await part(files[before.language].console)()).default)
    }
  }
}
