import { createContext, type ReactNode, use, useCallback, useEffect, useMemo, useState } from 'react'
import { choiceCookies, type Language } from '#sdk/page/languages.ts'
import { gatewayNow } from '../api/gateway-clock.ts'
import { loadCatalog, showCatalog } from './catalogs.ts'
import { writeChoiceCookie } from './choice-cookie.ts'
import { localeOf } from './language.ts'
import { latest } from './latest.ts'
import { type Catalog, type CountedKey, counted, fill, type MessageKey, type Values } from './messages.ts'
import { relativeTime } from './relative-time.ts'

export interface Translation {
  readonly language: Language
  t(key: MessageKey, values?: Values): string
  /** A message that depends on a number, its `{count}`. */
  tn(key: CountedKey, count: number, values?: Values): string
  /** Day and time. */
  dateTime(at: string | number): string
  /** With seconds. */
  exactTime(at: string | number): string
  day(at: string | number): string
  relative(at: string | number): string
  number(value: number): string
  /** Rejects if its texts can't be loaded; then the language stays the same. */
  setLanguage(language: Language): Promise<void>
}

const storageKey = 'gatehouse.language'

export const rememberedLanguage = (): string | null => localStorage.getItem(storageKey)

const loadChosen = latest(loadCatalog)

const Context = createContext<Translation | undefined>(undefined)

export function useTranslation(): Translation {
  const translation = use(Context)
  if (translation === undefined) throw new Error('there is no catalog around this component')
  return translation
}

interface ProviderProps {
  readonly first: { readonly language: Language; readonly catalog: Catalog }
  readonly children: ReactNode
}

export function TranslationProvider({ first, children }: ProviderProps) {
  const [{ language, catalog }, setCurrent] = useState(first)
  useEffect(() => {
    document.documentElement.lang = language
  }, [language])

  const setLanguage = useCallback(async (next: Language) => {
    const loaded = await loadChosen(next)
    if (loaded === undefined) return
    localStorage.setItem(storageKey, next)
    writeChoiceCookie(choiceCookies.language, next)
    document.documentElement.lang = next
    showCatalog(next, loaded)
    setCurrent({ language: next, catalog: loaded })
  }, [])

  const translation = useMemo((): Translation => {
    const locale = localeOf(language, navigator.languages)
    const rules = new Intl.PluralRules(language)
    const dateTimes = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short' })
    const exactTimes = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'medium' })
    const days = new Intl.DateTimeFormat(locale, { dateStyle: 'long' })
    const distances = new Intl.RelativeTimeFormat(language, { numeric: 'auto' })
    const numbers = new Intl.NumberFormat(locale)
    return {
      language,
      t: (key, values) => fill(catalog[key], values),
      tn: (key, count, values) =>
        fill(counted(catalog, rules, key, count), { ...values, count: numbers.format(count) }),
      dateTime: (at) => dateTimes.format(new Date(at)),
      exactTime: (at) => exactTimes.format(new Date(at)),
      day: (at) => days.format(new Date(at)),
      relative: (at) => relativeTime(distances, new Date(at).getTime(), gatewayNow()),
      number: (value) => numbers.format(value),
      setLanguage,
    }
  }, [language, catalog, setLanguage])

  return <Context value={translation}>{children}</Context>
}
