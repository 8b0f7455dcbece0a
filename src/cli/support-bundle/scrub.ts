import { SecretValues, withoutSecrets } from '#kernel/secret-values.ts'
import { isSecretName, withoutTokens } from '#kernel/text/redaction.ts'

const hidden = '[redacted]'

/** Names that say where a secret is, not what it is. */
const places: ReadonlySet<string> = new Set(['secretname', 'secretkey'])

const isSecret = (name: string): boolean =>
  !places.has(name.toLowerCase()) && (isSecretName(name) || /(?:^|_)(?:key|pw|pwd|salt|pepper)$|[a-z]Key$/.test(name))

const privateKey = /-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)/g
const credentials = /(?<=:\/\/)[^\s/@"'`]+@/g
const scheme = /\b(Bearer|Basic|Digest|Negotiate|ApiKey)(\s+)[\w.~+/=-]{6,}/gi
const assignment =
  /((?:pass(?:word|wd|phrase)?|secret|token|api[-_]?key|credential|pwd)[\w-]*\\?["']?\s*[:=]\s*\\?["']?)(?!\[redacted\])[^\s"'`&,;)}\]\\]+/gi

/** Takes out what is or looks like a secret. It knows the values that it is told, and those of open configurations. */
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
      .replace(credentials, `${hidden}@`)
      .replace(scheme, `$1$2${hidden}`)
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
          const means = key === 'value' && typeof parameter === 'string' ? parameter : key
          return [this.text(key), this.json(item, means)]
        }),
      )
    }
    if (isSecret(name) && value !== null && typeof value !== 'boolean') return hidden
    return typeof value === 'string' ? this.text(value) : value
  }

  /** Remembers every text of a configuration that has the name of a secret, since logs and checks may quote it. */
  learn(value: unknown, name = '', parameter?: unknown): void {
    if (typeof value === 'string') {
      const means = name === 'value' && typeof parameter === 'string' ? parameter : name
      if (isSecret(means)) this.add(value, hidden)
      const { password = '' } = URL.parse(value) ?? {}
      this.add(password, hidden)
    } else if (Array.isArray(value)) {
      for (const item of value) this.learn(item, name, parameter)
    } else if (typeof value === 'object' && value !== null) {
      const { name: own } = value as { readonly name?: unknown }
      for (const [key, item] of Object.entries(value)) this.learn(item, key, own)
    }
  }

  /** What variables have that look like secrets by their name, or have credentials in an address. */
  learnEnvironment(environment: Readonly<Record<string, string | undefined>>): void {
    for (const [name, value = ''] of Object.entries(environment)) {
      const { password = '', username = '' } = URL.parse(value) ?? {}
      if (isSecret(name) || isSecret(name.toLowerCase()) || password !== '') this.add(value, `#[${name}]`)
      this.add(password, hidden)
      if (password !== '') this.add(username, hidden)
    }
  }
}
