import type apiTexts from '../i18n/apis/en.json'
import type consoleTexts from '../i18n/console/en.json'
import type en from '../i18n/en.json'
import type settingsTexts from '../i18n/settings/en.json'
import { isolated } from './isolated.ts'

type Texts = typeof en & typeof consoleTexts & typeof apiTexts & typeof settingsTexts

export type MessageKey = keyof Texts
export type Catalog = Readonly<Record<MessageKey, string>>

/** Keys of messages that depend on a number, without `.one` and `.other`. */
export type CountedKey = MessageKey extends infer K ? (K extends `${infer Base}.other` ? Base : never) : never

export type Values = Readonly<Record<string, string | number>>

/** The text with `{name}` replaced by isolated values; a name without a value stays, so that the mistake is visible. */
export const fill = (text: string, values: Values = {}): string =>
  text.replace(/\{(\w+)\}/g, (written, name: string) =>
    Object.hasOwn(values, name) ? isolated(String(values[name])) : written,
  )

/** The message for a number: `.one` or `.other`, by the rules of the language. */
export function counted(catalog: Catalog, rules: Intl.PluralRules, key: CountedKey, count: number): string {
  const one = `${key}.one` as MessageKey
  return rules.select(count) === 'one' && Object.hasOwn(catalog, one)
    ? catalog[one]
    : catalog[`${key}.other` as MessageKey]
}
