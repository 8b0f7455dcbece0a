import type { UserRef } from '#identity/identity.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'

/** The state of an interactive login. It is in storage, bound to the browser by a cookie, and expires after minutes. */
export interface LoginStep {
  /**
   * Public and random: identifies the login in URLs, such as OpenID Connect's `state`. It is useless without the
   * cookie.
   */
  readonly id: string
  /** The mechanism's `uri`. */
  readonly uri: string
  /** The mechanism's path on this host with the login in its query, for its forms and redirects. */
  readonly address: string
}

/**
 * A try of a credential. It counts as a failure until `succeeded` or another result is reported, so that concurrent
 * tries are all counted.
 */
export type LoginTry =
  /**
   * `concealed`: the account is locked, and the typed login is not. Answer it like a wrong credential, after the
   * same work: a lock that two names share would reveal that both belong to one user.
   */
  | { readonly allowed: false; readonly retryAfterSeconds: number; readonly concealed: boolean }
  | {
      readonly allowed: true
      succeeded(): Promise<void>
      /** The credential could not be checked; the try does not count. */
      abandoned(): Promise<void>
      /** `login` is that of an existing user. Typed text is not recorded: it may be a password. */
      failed(reason: string, login?: string): Promise<void>
    }

interface GuardOptions {
  /** Tries of other credentials than the password are counted separately. */
  readonly credential?: 'second factor'
  /** Looks up the typed login; called at most once, and not if the address or the typed login is locked. */
  find?(): Promise<UserRef | undefined>
}

/**
 * Counts failed tries per account and per address, in storage. A browser that its owner logged in with before has
 * separate tries, which no one else can use up.
 */
export interface LoginGuard {
  /**
   * Call it before checking a credential. `typed` is the login as typed, known or unknown: the same limits apply to
   * both, so that they reveal nothing. All names of an entry share its tries. Throws errors of `find`, and then
   * counts nothing.
   */
  begin(typed: string, options?: GuardOptions): Promise<LoginTry>
}

/** Redirects a browser, which does not repeat a POST. `location` is a path of this host, or a fixed URL. */
export const seeOther = (location: string): GatewayResponse => ({
  status: 303,
  headers: { location, 'cache-control': 'no-store' },
})
