import type { Language } from '#sdk/page/languages.ts'
import type { Catalog } from './messages.ts'
import { part } from './part.ts'

type Texts = () => Promise<{ readonly default: Readonly<Record<string, string>> }>

/** Texts that are loaded with their pages: of administrators, of the API documentation, and of a user's settings. */
type Section = 'console' | 'apis' | 'settings'

const files: Readonly<Record<Language, Readonly<Record<Section | 'all', Texts>>>> = {
  en: {
    all: () => import('../i18n/en.json'),
    console: () => import('../i18n/console/en.json'),
    apis: () => import('../i18n/apis/en.json'),
    settings: () => import('../i18n/settings/en.json'),
  },
  de: {
    all: () => import('../i18n/de.json'),
    console: () => import('../i18n/console/de.json'),
    apis: () => import('../i18n/apis/de.json'),
    settings: () => import('../i18n/settings/de.json'),
  },
  es: {
    all: () => import('../i18n/es.json'),
    console: () => import('../i18n/console/es.json'),
    apis: () => import('../i18n/apis/es.json'),
    settings: () => import('../i18n/settings/es.json'),
  },
  fr: {
    all: () => import('../i18n/fr.json'),
    console: () => import('../i18n/console/fr.json'),
    apis: () => import('../i18n/apis/fr.json'),
    settings: () => import('../i18n/settings/fr.json'),
  },
  ja: {
    all: () => import('../i18n/ja.json'),
    console: () => import('../i18n/console/ja.json'),
    apis: () => import('../i18n/apis/ja.json'),
    settings: () => import('../i18n/settings/ja.json'),
  },
}

const opened = new Set<Section>()
let shown: { readonly language: Language; readonly catalog: Catalog } | undefined

/** The texts of a language, with those of each section once a page of it was opened. */
export async function loadCatalog(language: Language): Promise<Catalog> {
  const texts = await Promise.all((['all', ...opened] as const).map((section) => part(files[language][section])()))
  return Object.assign({}, ...texts.map((one) => one.default))
}

/** Says which catalog the portal shows from now on. */
export const showCatalog = (language: Language, catalog: Catalog): void => {
  shown = { language, catalog }
}

/** Loads a page together with the texts of its sections. */
const sectionPart =
  (...sections: readonly Section[]) =>
  <T>(load: () => Promise<T>): (() => Promise<T>) => {
    const page = part(load)
    return async () => (await Promise.all([page(), ...sections.map(addTexts)]))[0]
  }

/** Loads a page of administrators, who see settings of users. */
export const consolePart = sectionPart('console', 'settings')

/** Loads a page on which users change their settings. */
export const settingsPart = sectionPart('settings')

/** Loads a page of the API documentation. */
export const apisPart = sectionPart('apis')

async function addTexts(section: Section): Promise<void> {
  opened.add(section)
  // The user may choose another language meanwhile.
  for (let before: typeof shown; before !== shown; ) {
    before = shown
    if (before !== undefined) {
      Object.assign(before.catalog, (await part(files[before.language][section])()).default)
    }
  }
}
