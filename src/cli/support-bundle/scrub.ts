import { SecretValues, withoutSecrets } from '#kernel/secret-values.ts'
import { isSecretName, withoutTokens } from '#kernel/text/redaction.ts'
import { secretPaths, withoutSecretPaths } from './addresses.ts'
import { partsOfKeys, withoutPrivateKeys } from './private-keys.ts'

const hidden = '[redacted]'

/** Names that say where a secret is, not what it is. */
const places: ReadonlySet<string> = new Set(['secretname', 'secretkey'])

const isSecret = (name: string): boolean =>
  !places.has(name.toLowerCase()) &&
  (isSecretName(name) || /(?:^|[_-])(?:key|pw|pwd|salt|pepper)$/i.test(name) || /[a-z]Key$/.test(name))

/** Until the last `@`, since people forget to encode it and slashes in passwords. */
const credentials = /(?<=:\\{0,4}\/\\{0,4}\/)(?:[^\s/"'`]+|[^\s/:@"'`]{0,300}:(?!\d+[/?#])[^\s"'`]{0,300})@/g
const scheme = /\b(Bearer|Basic|Digest|Negotiate|ApiKey)(\s+)[\w.~+/=-]{6,}/gi
/** Tokens that say by themselves whose they are. */
const wellKnown = /\b(?:gh[pousr]_|github_pat_|glpat-|npm_|hvs\.|xox[a-z]-|sk_live_|SG\.)[\w.-]{10,}/g
const cookies = /\b((?:set-)?cookie:\s*)[^\n"']+/gi

/** What is assigned: a text in quotes, which may be escaped, a block of YAML, or a word. */
const assigned = [
  String.raw`(?<=\\")(?:(?!\\")[^\n])+`,
  String.raw`(?<=")(?:[^"\\\n]|\\[^\n])+`,
  String.raw`(?<=')(?:[^'\\\n]|\\[^\n])+`,
  '(?<=`)[^`\\n]+',
  String.raw`[|>][-+\d]*[ \t]*\r?\n(?<indent>[ \t]+)[^\n]*(?:\n\k<indent>[^\n]*)*`,
  '[^\\s"\'`&,;)}\\]\\\\]+',
].join('|')
// The name is bounded, so that long words cost no more than others.
const assignment = new RegExp(
  String.raw`((?:pass(?:word|wd|phrase)?|secret|token|api[-_]?key|credential|pwd|authorization)[\w-]{0,60}(?:\\?["']?\]?\s*(?:=>|[:=])\s*\\?["'${'`'}]?|\\?["']?(?:\s*,|\(|\s+value=)\s*\\?["'${'`'}]))(?!\[redacted\]|#\[[\w.-]+\])(?:${assigned})`,
  'gi',
)
/** Of XML. */
const element = /(<[^<>]{0,60}(?:pass|secret|token|credential|key)[^<>]{0,60}>)[^<]+/gi

/** User and password of an address, as written and decoded. An address of PostgreSQL may have several hosts, which no URL has. */
function accountOf(address: string): { readonly users: readonly string[]; readonly passwords: readonly string[] } {
  const [, user = '', password = ''] = /^[a-z][\w+.-]*:\/\/([^\s/?#:]*):([^\s/?#]*)@/i.exec(address) ?? []
  return { users: [user, decoded(user)], passwords: [password, decoded(password)] }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The private part of a JSON Web Key. */
const privateMembers: ReadonlySet<string> = new Set(['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'])

/** Maps whose values are secrets, whatever their names are. */
const maps = /^(?:credentials?|pass(?:word|phrase)s|secrets|tokens|api[-_]?keys)$/i

/** The name that a member has for people: that of the parameter in a list of {name, value}, and that of a map of secrets. */
function meaningOf(object: object, key: string, parent: string): string {
  if (key !== 'value') return maps.test(parent) ? parent : key
  const { name, key: id = name } = object as { readonly name?: unknown; readonly key?: unknown }
  return typeof id === 'string' ? id : parent
}

/** A shorter part of a key may be a word that others have. */
const shortestPart = 20

/** A text that is a document of JSON itself, such as the one that kubectl leaves in an annotation. */
function parsedObject(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Every text of a value, in its order. */
function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsOf) : []
}

/** Takes out what is or looks like a secret. It knows the values that it is given, and those of open configurations. */
export class Scrubber {
  readonly #known = new SecretValues()

  /** A value that no part may have. */
  add(value: string, shown: string): void {
    if (value !== '') this.#known.add(value, shown)
  }

  text(text: string): string {
    // First, since lines that mark a key may be known themselves.
    const known = this.#known.without(withoutSecrets(withoutPrivateKeys(text)))
    return withoutSecretPaths(withoutTokens(known).replace(credentials, `${hidden}@`))
      .replace(wellKnown, hidden)
      .replace(scheme, `$1$2${hidden}`)
      .replace(cookies, `$1${hidden}`)
      .replace(element, `$1${hidden}`)
      .replace(assignment, `$1${hidden}`)
  }

  /** A value of JSON: texts at any depth, and everything that has the name of a secret. */
  json(value: unknown): unknown {
    return this.#json(value, '', partsOfKeys(textsOf(value)))
  }

  #json(value: unknown, name: string, keys: ReadonlySet<string>): unknown {
    if (Array.isArray(value)) return value.map((item) => this.#json(item, name, keys))
    if (typeof value === 'object' && value !== null) {
      const isKey = 'kty' in value
      return Object.fromEntries(
        Object.entries(value).map(([key, item]) => {
          const shown = isKey && privateMembers.has(key) ? hidden : this.#json(item, meaningOf(value, key, name), keys)
          return [this.text(key), shown]
        }),
      )
    }
    if (isSecret(name) && value !== null && typeof value !== 'boolean') return hidden
    if (typeof value !== 'string') return value
    if (keys.has(value)) return hidden
    const inner = parsedObject(value)
    return inner === undefined ? this.text(value) : JSON.stringify(this.json(inner))
  }

  /** Remembers every text of a configuration that has the name of a secret, since logs and checks may quote it. */
  learn(value: unknown): void {
    for (const part of partsOfKeys(textsOf(value))) if (part.length >= shortestPart) this.add(part, hidden)
    this.#learn(value, '')
  }

  #learn(value: unknown, name: string): void {
    if (typeof value === 'string') {
      if (isSecret(name)) this.add(value, hidden)
      for (const part of [...accountOf(value).passwords, ...secretPaths(value)]) this.add(part, hidden)
    } else if (Array.isArray(value)) {
      for (const item of value) this.#learn(item, name)
    } else if (typeof value === 'object' && value !== null) {
      for (const [key, item] of Object.entries(value)) this.#learn(item, meaningOf(value, key, name))
    }
  }

  /** What variables have that look like secrets by their name, or have credentials in an address. */
  learnEnvironment(environment: Readonly<Record<string, string | undefined>>): void {
    for (const [name, value = ''] of Object.entries(environment)) {
      const { users, passwords } = accountOf(value)
      const hasPassword = passwords.some((password) => password !== '')
      if (isSecret(name) || hasPassword) this.add(value, `#[${name}]`)
      for (const part of hasPassword ? [...users, ...passwords] : []) this.add(part, hidden)
    }
  }
}
