import { createHmac, randomBytes } from 'node:crypto'
import { DirectoryLogin, parseLookup } from '#adapters/auth-mechanisms/shared/directory-login.ts'
import { BoundedCache } from '#kernel/bounded-cache.ts'
import { GatewayError } from '#kernel/errors.ts'
import {
  type AuthAttempt,
  type AuthHost,
  type AuthMechanism,
  type AuthOutcome,
  defineAuthMechanism,
} from '#sdk/auth/auth-mechanism.ts'
import type { LoginGuard } from '#sdk/auth/login.ts'
import { type GatewayRequest, header } from '#sdk/http/http.ts'
import { linkedForMillis } from '#sdk/login/linked-subject.ts'
import { parsed, text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'

const parameters = {
  realmName: parsed('text', readRealm, {
    about: 'The realm named in `WWW-Authenticate`, which browsers may show: printable ASCII without `"` and `\\`.',
    required: true,
  }),
  uidAttr: text({ about: 'The attribute that holds the login.', fallback: 'uid' }),
}

/** Login and password by HTTP Basic (RFC 7617), which the virtual directory checks, for programs without a form. */
export default defineAuthMechanism({
  className: 'auth.BasicAuth',
  aliases: ['com.tremolosecurity.proxy.auth.BasicAuth'],
  parameters,
  parse: (params, issues, context) => {
    const { realmName = '', uidAttr } = readParameters(parameters, params, issues, context)
    return { realmName, uidAttr, lookup: parseLookup({ uidAttr }, params, issues) }
  },
  create: ({ realmName, uidAttr, lookup }, host) => {
    if (lookup === undefined) throw new Error('the lookup settings are invalid')
    return new BasicAuth(realmName, new DirectoryLogin(lookup, uidAttr, host), host)
  },
})

function readRealm(written: string): string {
  if (/^[\x20-\x7e]{1,128}$/.test(written) && !/["\\]/.test(written)) return written
  throw new Error('must be at most 128 printable ASCII characters without " and \\')
}

const maxHeader = 4096
const remembered = 10_000
const readingMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

class BasicAuth implements AuthMechanism {
  readonly #challenge: Readonly<Record<string, string>>
  readonly #people: DirectoryLogin
  /** Credentials are compared by a keyed hash, so that memory has no passwords. */
  readonly #key = randomBytes(32)
  /**
   * Accepted credentials, for seconds. Programs send theirs with every request, several at a time: without it, each would
   * be another try, and cost a check of the password.
   */
  readonly #accepted: BoundedCache<AuthOutcome>
  readonly #pending = new Map<string, Promise<AuthOutcome>>()
  readonly #host: Pick<AuthHost, 'clock'>

  constructor(realm: string, people: DirectoryLogin, host: Pick<AuthHost, 'clock'>) {
    this.#challenge = { 'www-authenticate': `Basic realm="${realm}", charset="UTF-8"` }
    this.#people = people
    this.#host = host
    this.#accepted = new BoundedCache(remembered, host.clock)
  }

  async begin({ request, root, guard }: AuthAttempt): Promise<AuthOutcome> {
    const given = readBasic(header(request, 'authorization'))
    if (given === 'none' || guard === undefined) {
      return { kind: 'rejected', reason: 'no HTTP Basic credential', headers: this.#challenge, noCredential: true }
    }
    const local = request.isLocal === true
    if (!local && !request.origin.startsWith('https:')) {
      return { kind: 'rejected', reason: 'HTTP Basic needs https, or a caller on this machine', status: 403 }
    }
    if (isForeign(request)) return { kind: 'rejected', reason: 'a change from a page of another site', status: 403 }
    if (given === 'malformed') return this.#rejected('an HTTP Basic credential that cannot be read')
    const { user, password } = given
    const known = JSON.stringify([root, local, request.remoteAddress, user, password])
    const id = createHmac('sha256', this.#key).update(known).digest('base64')
    const accepted = this.#accepted.get(id)
    if (accepted !== undefined) return accepted
    const pending = this.#pending.get(id) ?? this.#check(id, { user, password, root, local }, guard)
    this.#pending.set(id, pending)
    return pending
  }

  async #check(id: string, given: Parameters<DirectoryLogin['logIn']>[0], guard: LoginGuard): Promise<AuthOutcome> {
    try {
      const outcome = await this.#people.logIn(given, guard)
      if (outcome.kind === 'refused') return this.#rejected('wrong login or password')
      if (outcome.kind === 'locked') {
        const { retryAfterSeconds: retryAfter } = outcome
        throw new GatewayError('TOO_MANY_REQUESTS', 'too many failed tries of HTTP Basic', { retryAfter })
      }
      this.#accepted.set(id, outcome, new Date(this.#host.clock().getTime() + linkedForMillis))
      return outcome
    } finally {
      this.#pending.delete(id)
    }
  }

  #rejected(reason: string): AuthOutcome {
    return { kind: 'rejected', reason, headers: this.#challenge }
  }
}

/**
 * Browsers send the credential that a user once typed with requests from pages of any site. Only a page of this very
 * origin may cause a change; programs say nothing about pages.
 */
function isForeign(request: GatewayRequest): boolean {
  if (readingMethods.has(request.method)) return false
  const site = header(request, 'sec-fetch-site') ?? 'none'
  const origin = header(request, 'origin') ?? request.origin
  return (site !== 'none' && site !== 'same-origin') || origin !== request.origin
}

type Basic = 'none' | 'malformed' | { readonly user: string; readonly password: string }

function readBasic(written: string | undefined): Basic {
  const [, encoded] = /^basic +([A-Za-z0-9+/]*={0,2})$/i.exec(written?.trim() ?? '') ?? []
  if (encoded === undefined) return /^basic\b/i.test(written ?? '') ? 'malformed' : 'none'
  if (encoded.length > maxHeader) return 'malformed'
  let decoded: string
  try {
    decoded = new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(encoded, 'base64'))
  } catch {
    return 'malformed'
  }
  const colon = decoded.indexOf(':')
  if (colon < 1 || /\p{Cc}/u.test(decoded)) return 'malformed'
  return { user: decoded.slice(0, colon), password: decoded.slice(colon + 1) }
}
