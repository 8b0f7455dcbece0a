/** A login under way: a chain that waits for somebody to do something. */
export interface Login {
  /** Public: it stands in addresses. */
  readonly id: string
  /** The hash of the secret in the browser's login cookie; the secret itself is never stored. */
  readonly browser: string
  /** The host it was begun at, and can go on at. */
  readonly host: string
  /** Where it stands, what it knows so far and where it leads: sealed by whoever keeps it. */
  readonly data: string
  /** Goes up with every step, so that a step is taken once. */
  readonly version: number
  readonly created: Date
  readonly expires: Date
}

/** How many logins of one browser are kept; the oldest goes when there is one more. */
export const loginsPerBrowser = 20

export interface LoginStore {
  /** Throws CONFLICT when the id exists. */
  create(login: Login): Promise<void>
  /** Undefined when absent, expired, or another browser's or host's. */
  find(key: Pick<Login, 'id' | 'browser' | 'host'>, now: Date): Promise<Login | undefined>
  /** Takes a step: false, and nothing changes, when another took it or the login has ended or expired. */
  advance(id: string, version: number, data: string, now: Date): Promise<boolean>
  /** Takes the last step: false when another took it or the login has ended or expired. */
  finish(id: string, version: number, now: Date): Promise<boolean>
  /** Whether the browser has a login that has not expired. */
  knows(browser: string, now: Date): Promise<boolean>
  /** Removes what has expired; how many. */
  deleteExpired(now: Date): Promise<number>
}
