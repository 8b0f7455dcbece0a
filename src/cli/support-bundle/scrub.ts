import { SecretValues, withoutSecrets } from '#kernel/secret-values.ts'
import { isSecretName, withoutTokens } from '#kernel/text/redaction.ts'

const hidden = '[redacted]'

/** Names that say where a secret is, not what it is. */
const places: ReadonlySet<string> = new Set(['secretname', 'secretkey'])

const isSecret = (name: string): boolean =>
  !places.has(name.toLowerCase()) &&
  (isSecretName(name) || /(?:^|[_-])(?:key|pw|pwd|salt|pepper)$/i.test(name) || /[a-z]Key$/.test(name))

const privateKey =
  /-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|$)/g
/** The last lines of a log may begin within a key. */
const restOfKey = /(?:^[A-Za-z0-9+/=]+\r?\n)+(?=-----END [A-Z0-9 ]*PRIVATE KEY)/gm
/** Until the last `@` of the host, since people forget to encode it in passwords. */
const credentials = /(?<=:\/\/)[^\s/"'`]+@/g
const scheme = /\b(Bearer|Basic|Digest|Negotiate|ApiKey)(\s+)[\w.~+/=-]{6,}/gi
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
  String.raw`((?:pass(?:word|wd|phrase)?|secret|token|api[-_]?key|credential|pwd)[\w-]{0,60}\\?["']?\s*[:=]\s*\\?["'${'`'}]?)(?!\[redacted\]|#\[[\w.-]+\])(?:${assigned})`,
  'gi',
)

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

/** Takes out what is or looks like a secret. It knows the values that it is given, and those of open configurations. */
export class Scrubber {
  readonly #known = new SecretValues()

  /** A value that no part may have. */
  add(value: string, shown: string): void {
    if (value !== '') this.#known.add(value, shown)
  }

  text(text: string): string {
    const known = this.#known.without(withoutSecrets(text))
    return withoutTokens(known)
      .replace(privateKey, hidden)
      .replace(restOfKey, `${hidden}\n`)
      .replace(credentials, `${hidden}@`)
      .replace(scheme, `$1$2${hidden}`)
      .replace(cookies, `$1${hidden}`)
      .replace(assignment, `$1${hidden}`)
  }

  /** A value of JSON: texts at any depth, and everything that has the name of a secret. */
  json(value: unknown, name = ''): unknown {
    if (Array.isArray(value)) return value.map((item) => this.json(item, name))
    if (typeof value === 'object' && value !== null) {
      const { name: parameter } = value as { readonly name?: unknown }
      return Object.fromEntries(
        Object.entries(value).map(([key, item]) => {
          // Parameters may be a list of {name, value}.
          const means = typeof parameter === 'string' ? parameter : name
          return [this.text(key), this.json(item, key === 'value' ? means : key)]
        }),
      )
    }
    if (isSecret(name) && value !== null && typeof value !== 'boolean') return hidden
    return typeof value === 'string' ? this.text(value) : value
  }

  /** Remembers every text of a configuration that has the name of a secret, since logs and checks may quote it. */
  learn(value: unknown, name = ''): void {
    if (typeof value === 'string') {
      if (isSecret(name)) this.add(value, hidden)
      for (const password of accountOf(value).passwords) this.add(password, hidden)
    } else if (Array.isArray(value)) {
      for (const item of value) this.learn(item, name)
    } else if (typeof value === 'object' && value !== null) {
      const { name: parameter } = value as { readonly name?: unknown }
      const means = typeof parameter === 'string' ? parameter : name
      for (const [key, item] of Object.entries(value)) this.learn(item, key === 'value' ? means : key)
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
