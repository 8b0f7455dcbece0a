/** The settings that the gateway writes into the portal's page, in the element `settings`. */
export interface PortalSettings {
  /** Where the portal is mounted, without a trailing slash; empty at the root. */
  readonly base: string
  /** The page title until the configuration is loaded. */
  readonly title: string
  /** The logo beside the name, as a data URI. */
  readonly logo?: string | undefined
  /** The CSP nonce for styles that the page creates. */
  readonly nonce: string
  /** Where the APIs are: paths of this host without a trailing slash. */
  readonly apis: {
    /** Absent: this is the registration form alone, for people without an account. */
    readonly main?: string
    /** Absent: users get no warning before their session expires. */
    readonly sessionCheck?: string
    /** Absent, like the following ones: the portal has no such page. */
    readonly register?: string
    readonly token?: string
    readonly account?: string
  }
}

/** The pages of the portal, as `hidePages` and `startPage` name them. */
export const portalPages = [
  'front-page',
  'request-access',
  'requests',
  'access',
  'approvals',
  'token',
  'register',
  'reports',
  'dashboard',
  'console',
  'user',
  'security',
  'apis',
] as const
