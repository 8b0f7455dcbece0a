export interface AccountView {
  readonly login: string
  readonly displayName: string
  /** Absent for a caller without a session, who can change nothing. */
  readonly session?: {
    readonly id: string
    readonly chain: string
    readonly level: number
    readonly started: string
    readonly expires: string
  }
  /** The rules of a new password; absent where the caller's password can't be changed here. */
  readonly password?: PasswordRuleView
}

export interface PasswordRuleView {
  readonly minChars: number
  readonly maxChars: number
}

/** The body of POST `password`. */
export interface ChangePassword {
  readonly currentPassword: string
  readonly newPassword: string
}

export interface AccountSession {
  readonly id: string
  /** The session of this request. */
  readonly current: boolean
  readonly application: string
  readonly started: string
  readonly lastUsed: string
  readonly expires: string
  /** The address and the User-Agent at login: untrusted text. */
  readonly address: string
  readonly agent: string
}

export interface AccountSessions {
  readonly sessions: readonly AccountSession[]
}

/** The answer to DELETE `sessions`, and to POST `password`. */
export interface EndedSessions {
  readonly ended: number
}

export type AccountFactorKind = 'totp' | 'passkey'

export interface AccountFactor {
  readonly id: string
  readonly kind: AccountFactorKind
  readonly name: string
  readonly created: string
  /** Absent until its first use. */
  readonly lastUsed?: string
}

export interface AccountFactors {
  readonly factors: readonly AccountFactor[]
  /** How many recovery codes are left. */
  readonly recoveryCodes: number
  /** The kinds of factors that can be enrolled here. */
  readonly offers: readonly AccountFactorKind[]
}

/** The answer to POST `factors/totp`. */
export interface TotpEnrolment {
  readonly enrolment: string
  /** Base 32, for typing. */
  readonly secret: string
  /** `otpauth:`, for scanning or following. */
  readonly uri: string
  /** The same as an image: an SVG path in a square of `size` units. */
  readonly qr: { readonly size: number; readonly path: string }
  /** The last time at which it can be confirmed. */
  readonly expires: string
}

/** The body of POST `factors/totp/confirm`. */
export interface ConfirmTotp {
  readonly enrolment: string
  readonly code: string
  readonly name?: string
}

/** The answer to POST `factors/passkey`. */
export interface PasskeyEnrolment {
  readonly enrolment: string
  /** For `navigator.credentials.create`, as PublicKeyCredentialCreationOptionsJSON. */
  readonly options: unknown
  readonly expires: string
}

/** The body of POST `factors/passkey/confirm`. */
export interface ConfirmPasskey {
  readonly enrolment: string
  /** RegistrationResponseJSON. */
  readonly response: unknown
  readonly name?: string
}

/** The answer to a confirmation. */
export interface EnrolledFactor {
  readonly factor: AccountFactor
  /** New codes, for a user who had none. They are shown only once. */
  readonly recoveryCodes?: readonly string[]
}

/** The body of PATCH `factors/{id}`. */
export interface RenameFactor {
  readonly name: string
}

/** The answer to POST `recovery-codes`. */
export interface RecoveryCodes {
  readonly recoveryCodes: readonly string[]
}

/** The body of every failure. */
export interface AccountErrors {
  /** Text for people. */
  readonly errors: readonly string[]
  readonly code: string
  readonly requestId: string
  /** Where a browser signs in again, if the error asks for a fresh login. */
  readonly stepUp?: true
}
