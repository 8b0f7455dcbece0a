import { BoundedCache } from '#kernel/bounded-cache.ts'
import type { Clock } from '#kernel/clock.ts'
import { secretHash } from '#kernel/ids.ts'
import type { Logger } from '#kernel/logger.ts'
import { isTokenText } from './client-token.ts'
import { type ClientTokenStore, type UsableToken, useMillis } from './client-token-store.ts'

/** The bound of a revocation: for so long, a process may not have heard of it. */
export const checkedMillis = 5_000
const rememberedTokens = 10_000

/** The tokens of SCIM clients, as this process knows them. */
export class ClientTokens {
  readonly #store: Pick<ClientTokenStore, 'find' | 'use'>
  readonly #clock: Clock
  readonly #log: Logger
  /** By hash; undefined: no such token. */
  readonly #checked: BoundedCache<{ readonly token: UsableToken | undefined }>
  readonly #checks = new Map<string, Promise<UsableToken | undefined>>()
  /** When this process noted the last use, by id. */
  readonly #noted = new BoundedCache<number>(rememberedTokens)

  constructor(store: Pick<ClientTokenStore, 'find' | 'use'>, clock: Clock, log: Logger) {
    this.#store = store
    this.#clock = clock
    this.#log = log
    this.#checked = new BoundedCache(rememberedTokens, clock)
  }

  /** The token with this text, unless it expired or was revoked, or its tenant is disabled. Throws TARGET_UNREACHABLE while the database is away. */
  async verify(text: string): Promise<UsableToken | undefined> {
    if (!isTokenText(text)) return undefined
    const hash = secretHash(text)
    const known = this.#checked.get(hash)
    const token = known === undefined ? await this.#check(hash, text) : known.token
    const now = this.#clock().getTime()
    if (token === undefined || (token.expires !== undefined && token.expires.getTime() <= now)) return undefined
    this.#note(token.id, now)
    return token
  }

  /** Requests with one token, of which many may come at once, are one question to the database. */
  #check(hash: string, text: string): Promise<UsableToken | undefined> {
    const check = this.#checks.get(hash) ?? this.#read(hash, text)
    this.#checks.set(hash, check)
    return check
  }

  async #read(hash: string, text: string): Promise<UsableToken | undefined> {
    // From before the question, so that its time counts too.
    const end = new Date(this.#clock().getTime() + checkedMillis)
    try {
      const token = await this.#store.find(text)
      this.#checked.set(hash, { token }, end)
      return token
    } finally {
      this.#checks.delete(hash)
    }
  }

  /** Without waiting: the request does not depend on it. */
  #note(id: string, now: number): void {
    const noted = this.#noted.get(id)
    if (noted !== undefined && noted <= now && now - noted < useMillis) return
    this.#noted.set(id, now)
    this.#store
      .use(id)
      .catch((err: unknown) => this.#log.warn('the last use of a token was not noted', { token: id, err }))
  }
}
