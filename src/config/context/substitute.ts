import { isSecretAttribute } from '#identity/attributes.ts'
import type { Path } from '#kernel/issues.ts'
import { suggestion } from '#kernel/suggest.ts'
import type { ShownValue } from '#sdk/module/parse-context.ts'
import type { HiddenValues } from './hidden-values.ts'

/** `#[NAME]` or `#[NAME:default]`. */
export const placeholder = /#\[([A-Za-z_][\w.-]*)(?::([^\]]*))?\]/g

/** The gateway's own address, which everyone knows. */
export const urlName = 'GATEHOUSE_URL'
/** Settings of the gateway itself, apart from its address. */
const ownSetting = /^GATEHOUSE_(?!URL$)/
/** Other names of secrets in an environment; `PWD` is the working folder. */
const otherSecret = /(?:^|_)(?:pw|pat|creds?|auth|dsn|salt)$|.pwd$/i
/** An address with a user name and password, a setting such as `password=`, a private key, or a token. */
const withSecret = [
  /:\/\/[^/?#\s@]*:(?!\d+(?:[/?#]|$))[^\s@]*@/,
  /(?:^|[?&;,\s])(?:\w*(?:password|passwd|pwd|secret|token)|accountkey|sharedaccesskey)\s*=\s*[^\s&;]/i,
  /-----BEGIN [A-Z ]*PRIVATE KEY/,
  /^eyJ[\w-]{5,}\./,
]

/** Longer texts, such as scripts, are not quoted as a whole. */
const longestQuoted = 500

export type Environment = Readonly<Record<string, string | undefined>>

/** Substitutes values in texts, and records which it used. */
export class Substitution {
  /** Names that occurred, with their values. */
  readonly used = new Map<string, string>()
  readonly #environment: Environment
  readonly #values: ReadonlyMap<string, string>
  readonly #hidden: HiddenValues
  readonly #missingSecrets: ReadonlyMap<string, string>
  readonly #secretNames: ReadonlySet<string>
  readonly #unread: string | undefined

  constructor(
    environment: Environment,
    values: ReadonlyMap<string, string>,
    hidden: HiddenValues,
    {
      missingSecrets = new Map(),
      secretNames = new Set(),
      unread,
    }: {
      /** By name of a value that a secret should have: why it has none. */
      readonly missingSecrets?: ReadonlyMap<string, string>
      /** The values that secrets have, or should have. */
      readonly secretNames?: ReadonlySet<string>
      /** A file that can't be read and may have values. */
      readonly unread?: string | undefined
    } = {},
  ) {
    this.#environment = environment
    this.#values = values
    this.#hidden = hidden
    this.#missingSecrets = missingSecrets
    this.#secretNames = secretNames
    this.#unread = unread
  }

  /** Why it isn't known what the text becomes, not even if it has a default; undefined if it is known. */
  unreadValue(text: string): string | undefined {
    if (this.#unread === undefined || !text.includes('#[')) return undefined
    for (const [written, name = ''] of text.matchAll(placeholder)) {
      if (this.#lookUp(name) === undefined) return `${written} may have a value in ${this.#unread}, which can't be read`
    }
    return undefined
  }

  /** Why the text can't be substituted; undefined if no secret is missing. */
  missingSecret(text: string): string | undefined {
    if (this.#missingSecrets.size === 0 || !text.includes('#[')) return undefined
    for (const [written, name = '', fallback] of text.matchAll(placeholder)) {
      const problem = this.#missingSecrets.get(name)
      if (problem === undefined || fallback !== undefined || this.#lookUp(name) !== undefined) continue
      return `${written}: ${problem}`
    }
    return undefined
  }

  /**
   * The environment wins, then the values documents, then the default in the placeholder. Substituted text is not
   * parsed again, so a value can't refer to another one. Unknown names are reported and replaced with an empty text.
   * Messages show the names of values that come from the environment or a secret; `document` is what has the path.
   */
  apply(text: string, path: Path, report: (path: Path, message: string) => void, document?: object): string {
    if (!text.includes('#[')) return text
    const hidden = new Map<string, string>()
    const substituted = text.replace(placeholder, (written, name: string, fallback: string | undefined) => {
      const value = this.#lookUp(name) ?? fallback
      if (value === undefined) {
        const hint = suggestion(name, this.#values.keys())
        report(path, `${written} is neither in the environment nor in a values document${hint}`)
        return ''
      }
      this.used.set(name, value)
      if (this.#isHidden(name)) hidden.set(name, value)
      return value
    })
    if (hidden.size === 0) return substituted
    for (const [name, value] of hidden) {
      if (document === undefined) this.#hidden.values.add(value, `#[${name}]`)
      else this.#hidden.at(document, path, value, `#[${name}]`)
    }
    const shown = text.replace(placeholder, (_, name: string, fallback = '') =>
      hidden.has(name) ? `#[${name}]` : (this.#lookUp(name) ?? fallback),
    )
    // The text may be shown within JSON.
    if (substituted.length <= longestQuoted && !/["\\\p{Cc}]/u.test(shown)) this.#hidden.values.add(substituted, shown)
    return substituted
  }

  /** The value, for a place where requesters and approvers see it. */
  shownValue(name: string): ShownValue {
    const text = this.#lookUp(name)
    if (this.#isSecret(name, text ?? '')) return { kind: 'secret' }
    if (text === undefined) return { kind: 'absent' }
    this.used.set(name, text)
    return { kind: 'value', text }
  }

  #isHidden(name: string): boolean {
    if (Object.hasOwn(this.#environment, name)) return name !== urlName
    return this.#secretNames.has(name)
  }

  #isSecret(name: string, text: string): boolean {
    if (this.#secretNames.has(name) || isSecretAttribute(name)) return true
    return otherSecret.test(name) || ownSetting.test(name) || withSecret.some((form) => form.test(text))
  }

  #lookUp(name: string): string | undefined {
    const fromEnvironment = Object.hasOwn(this.#environment, name) ? this.#environment[name] : undefined
    return fromEnvironment ?? this.#values.get(name)
  }
}
