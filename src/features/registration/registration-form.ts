import {
  type HumanCheckView,
  type OpenUnisonRegisterConfig,
  openUnisonRegisterConfig,
  type RegisterConfig,
  registerConfig,
} from '#features/registration/contract/register.ts'
import type { Subject } from '#identity/subject.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Logger } from '#kernel/logger.ts'
import { wireForm } from '#kernel/wire.ts'
import type { FormAttributeView, ListItem } from '#sdk/contract/forms.ts'
import type { FormAttribute } from '#sdk/forms/form-attribute.ts'
import { isServerSet } from '#sdk/forms/form-values.ts'
import type { Translate } from '#sdk/page/configured-texts.ts'
import type { Texts } from '#sdk/page/page-texts.ts'
import type { SourceItem, ValueSource } from '#sdk/target/mapper.ts'
import { defaultSubmitText, defaultSubmittedText, type RegisterSettings } from './register-settings.ts'

/** Texts in the language of the user: those of the configuration, and the built-in ones. */
export interface FormTexts {
  readonly translate: Translate
  readonly t: Texts
}

/** The form for the page, without secrets, workflows and settings of the server. */
export function configView(
  settings: RegisterSettings,
  attributes: readonly FormAttributeView[],
  { translate, t }: FormTexts,
): RegisterConfig {
  const { given, humanCheck, terms } = settings
  const view = humanCheckView(settings)
  return wireForm(registerConfig, {
    ...given,
    headerTitle: translate(given.headerTitle),
    frontPage: { title: translate(given['frontPage.title']), text: translate(given['frontPage.text']) },
    reasons: given.reasons.map(translate),
    submitButtonText:
      given.submitButtonText === defaultSubmitText ? t('register.submit') : translate(given.submitButtonText),
    submittedText: submittedText(settings, { translate, t }),
    attributes,
    attributeNameList: attributes.map(({ name }) => name),
    requireReCaptcha: humanCheck !== 'none' && humanCheck !== 'proof-of-work',
    rcSiteKey: view.siteKey,
    termsAndConditionsText: terms === undefined ? undefined : translate(terms),
    humanCheck: view,
    passwordRules: given.preSetPassword
      ? { minChars: given.passwordMinChars, maxChars: given.passwordMaxChars }
      : undefined,
    verifyEmailAttribute: given.verifyEmail ? given.emailAttribute : undefined,
  })
}

/** The form for OpenUnison's registration page, which runs the scripts that the configuration names. */
export function openUnisonConfigView(
  { given, fieldTypes }: RegisterSettings,
  { attributes, ...config }: RegisterConfig,
): OpenUnisonRegisterConfig {
  const byName = attributes.map((attribute) => {
    const { name } = attribute
    const written = fieldTypes.get(name) ?? 'text'
    const script = given['<attribute>.editJavaScriptFunction'].get(name)
    const type = written === 'text-area' ? 'textarea' : written
    return [name, { ...attribute, type, ...(script === undefined ? {} : { editJavaScriptFunction: script }) }] as const
  })
  return wireForm(openUnisonRegisterConfig, {
    ...config,
    attributes: Object.fromEntries(byName),
    jsUris: given.jsUris,
    displayNameAttribute: given.displayNameAttribute,
  })
}

/** The text after a registration. */
export const submittedText = ({ given }: RegisterSettings, { translate, t }: FormTexts): string =>
  given.submittedText === defaultSubmittedText ? t('verify.thanksText') : translate(given.submittedText)

function humanCheckView({ given, humanCheck: kind }: RegisterSettings): HumanCheckView {
  const byProvider = kind !== 'none' && kind !== 'proof-of-work'
  const action = actionOf(kind, given.rcAction)
  return {
    kind,
    ...(byProvider && given.rcSiteKey !== undefined ? { siteKey: given.rcSiteKey } : {}),
    ...(action === undefined ? {} : { action }),
    ...(given.honeypotField === undefined ? {} : { honeypot: given.honeypotField }),
  }
}

/** The action of a human check: reCAPTCHA v3 always has one. */
export function actionOf(kind: RegisterSettings['humanCheck'], given: string | undefined): string | undefined {
  if (kind === 'recaptcha-v3') return given ?? 'register'
  return kind === 'turnstile' ? given : undefined
}

const maxItems = 1_000
const maxSearchLength = 100

interface ValueListParts {
  readonly attributes: readonly FormAttribute[]
  readonly sources: ReadonlyMap<string, ValueSource>
  readonly minSearchChars: number
  readonly log: Logger
}

/** The value lists of a form. Lists of fields that users cannot set are hidden. */
export class ValueLists {
  readonly #parts: ValueListParts

  constructor(parts: ValueListParts) {
    this.#parts = parts
  }

  /**
   * The list of one field, or of all that the search is long enough for. Throws BAD_REQUEST for a field without a list,
   * or if the search is too short for it.
   */
  async find(name: string | undefined, search: string, subject: Subject): Promise<ListItem[]> {
    const open = this.#parts.attributes.filter((attribute) => this.#isOpen(attribute))
    const wanted = name === undefined ? open : open.filter((attribute) => attribute.name === name)
    if (name !== undefined && wanted.length === 0) {
      const publicText = 'There is no list of that name.'
      throw new GatewayError('BAD_REQUEST', `the form has no list "${name.slice(0, 80)}"`, { publicText })
    }
    const text = search.trim()
    const least = this.#parts.minSearchChars
    const needsMore = (attribute: FormAttribute): boolean =>
      this.#isSearched(attribute) && Array.from(text).length < least
    if (name !== undefined && wanted.some(needsMore)) {
      const publicText = `search: this list needs at least ${least} characters. Send more of the value.`
      throw new GatewayError('BAD_REQUEST', `a search for values of "${name}" is too short`, { publicText })
    }
    const lists = []
    for (const attribute of wanted) if (!needsMore(attribute)) lists.push(await this.#list(attribute, text, subject))
    return numbered(lists.flat().slice(0, maxItems))
  }

  /**
   * The list in the form itself, without suggestions, which are searched. A list that cannot be read now is empty, so that
   * the form is still shown.
   */
  async shown(attribute: FormAttribute, subject: Subject): Promise<readonly ListItem[]> {
    if (!this.#isOpen(attribute) || this.#isSearched(attribute)) return []
    try {
      return numbered(await this.#list(attribute, '', subject))
    } catch (err) {
      this.#parts.log.warn('the values of a field could not be listed', { attribute: attribute.name, err })
      return []
    }
  }

  #isOpen(attribute: FormAttribute): boolean {
    return !isServerSet(attribute) && (attribute.items.length > 0 || this.#parts.sources.has(attribute.name))
  }

  /** A dynamic list that is not shown whole. */
  #isSearched({ name, type }: FormAttribute): boolean {
    return type !== 'list' && this.#parts.sources.has(name)
  }

  async #list({ name, items }: FormAttribute, search: string, subject: Subject): Promise<readonly SourceItem[]> {
    const source = this.#parts.sources.get(name)
    if (source === undefined) return search === '' ? items : items.filter((item) => contains(item, search))
    if (search === '') return await source.list({ limit: maxItems, subject })
    if (search.length > maxSearchLength || !search.isWellFormed() || /\p{Cc}/u.test(search)) return []
    return await source.list({ search, limit: maxItems, subject })
  }
}

const contains = ({ name, value }: SourceItem, search: string): boolean =>
  [name, value].some((text) => text.toLowerCase().includes(search.toLowerCase()))

const numbered = (items: readonly SourceItem[]): ListItem[] =>
  items.slice(0, maxItems).map(({ name, value }, num) => ({ name, value, num }))
