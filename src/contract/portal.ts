/** What the gateway puts into the portal's page, in the element `settings`. */
export interface PortalSettings {
  /** Where the portal is mounted, without a trailing slash; empty at the root. */
  readonly base: string
  /** What the browser shows until the configuration is there. */
  readonly title: string
  /** For styles that the page makes itself. */
  readonly nonce: string
  /** Where the APIs are: paths of this host without a trailing slash. */
  readonly apis: {
    /** Absent: this is the registration form alone, for people who are not known yet. */
    readonly main?: string
    /** Absent: nobody is warned before a session ends. */
    readonly sessionCheck?: string
    /** Absent, as those that follow: there is no such page. */
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
  'approvals',
  'token',
  'register',
  'reports',
  'dashboard',
  'user',
  'security',
] as const
