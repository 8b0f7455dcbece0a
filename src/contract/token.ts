/**
 * Paths of the Token API below its mount, which may end in `/token` or stand above it. Both answer JSON; failures are
 * `{"errors": [...]}`.
 */
export const tokenPaths = {
  /** GET. */
  config: 'config',
  /** GET reads what there is and changes nothing; POST makes new tokens, where that is allowed. */
  user: 'user',
} as const

/** GET config. */
export interface TokenConfig {
  readonly frontPage: { readonly title: string; readonly text: string }
  readonly homeURL: string
  readonly logoutURL: string
  /** The member of `token` that is to be shown as a QR code as well. */
  readonly qrCodeAttribute?: string
  readonly warnMinutesLeft: number
  readonly themePrimaryMain: string
  readonly themePrimaryDark: string
  readonly themePrimaryLight: string
  readonly themeSecondaryMain: string
  readonly themeSecondaryDark: string
  readonly themeSecondaryLight: string
  readonly errorColor: string
  readonly headerTitle: string
}

/** What the token page shows of an own issuer, by name; every one can be copied. Other loaders have names of their own. */
export const kubectlTokenKeys = {
  idToken: 'id_token',
  refreshToken: 'refresh_token',
  usage: 'Usage',
  command: 'kubectl Command',
  windowsCommand: 'kubectl Windows Command',
  loginPlugin: 'ou login plugin',
  clusterCertificate: 'Kubernetes API Server CA Certificate',
  ownCertificate: 'OpenUnison Server CA Certificate',
  /** A whole file, as YAML. */
  kubeconfig: 'kubeconfig',
} as const

/** How it stands with the tokens of a session. */
export interface TokenState {
  readonly idToken: 'valid' | 'expired'
  /** `unused`: it is shown, and may be taken. `used`: somebody took it. `ended`: it is worth nothing. `none`: there is none. */
  readonly refreshToken: 'unused' | 'used' | 'ended' | 'none'
  /** When the refresh token ends at the latest, ISO 8601. */
  readonly refreshExpires?: string
  /** Whether POST makes new ones; otherwise there are new ones after logging out and in. */
  readonly renewable: boolean
}

/** GET and POST user. */
export interface TokenUser {
  /** `Unknown` where the person has no such attribute. */
  readonly displayName: string
  /** What is to be shown, by label. */
  readonly token: Readonly<Record<string, string>>
  /** When the id_token ends, ISO 8601; absent where there is none. */
  readonly expires?: string
  /** What the id_token says. */
  readonly claims?: Readonly<Record<string, unknown>>
  readonly state?: TokenState
}

/** The body of every failure. */
export interface TokenErrors {
  /** For people. */
  readonly errors: readonly string[]
  readonly code?: string
  readonly requestId?: string
}
