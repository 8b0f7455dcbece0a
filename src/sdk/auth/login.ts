import type { UserRef } from '#identity/identity.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'

/** Where an interactive login stands. It is kept in storage, bound to the browser by a cookie, and ends after minutes. */
export interface LoginStep {
  /** Public and random: names the login in addresses, such as OpenID Connect's `state`. It is worth nothing without the cookie. */
  readonly id: string
  /** The mechanism's `uri`. */
  readonly uri: string
  /** The mechanism's path on this host with the login in its query: where its forms and redirects lead. */
  readonly address: string
}

/** Someone tries a credential. It counts as a failure until told otherwise, so that tries side by side are all counted. */
export type LoginTry =
  /**
   * `concealed`: the account is locked, and the login that was typed is not. To be answered like a wrong credential, after
   * the same work: a lock that two names share would reveal that both belong to one user.
   */
  | { readonly allowed: false; readonly retryAfterSeconds: number; readonly concealed: boolean }
  | {
      readonly allowed: true
      succeeded(): Promise<void>
      /** The credential could not be looked at; the try does not count. */
      abandoned(): Promise<void>
      /** `login` is that of somebody there is. What was typed is not written down: it may be a password. */
      failed(reason: string, login?: string): Promise<void>
    }

export interface GuardOptions {
  /** Tries of other credentials than the password are counted separately. */
  readonly credential?: 'second factor'
  /** Looks up the typed login; called at most once, and not when the address or the typed login is locked. */
  find?(): Promise<UserRef | undefined>
}

/**
 * Counts failed tries per account and per address, in storage. A browser that its owner logged in with before has tries of
 * its own, which no one else can use up.
 */
export interface LoginGuard {
  /**
   * Call it before checking a credential. `typed` is the login as typed, known or unknown: the same limits apply to both,
   * so that they reveal nothing. All names of an entry share its tries. Throws what `find` throws, and then counts nothing.
   */
  begin(typed: string, options?: GuardOptions): Promise<LoginTry>
}

/** Sends a browser on; what was posted is not posted again. `location` is a path of this host, or a fixed address. */
export const seeOther = (location: string): GatewayResponse => ({
  status: 303,
  headers: { location, 'cache-control': 'no-store' },
})
