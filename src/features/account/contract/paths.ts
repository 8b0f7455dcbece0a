/** Paths of the Account API below its mount, which may end in `/account` or be its parent. Times are ISO 8601. */
export const accountPaths = {
  /** GET. */
  account: '',
  /** GET, DELETE (all but this one); `sessions/{id}`: DELETE. */
  sessions: 'sessions',
  /** POST: changes the caller's password and ends the other sessions. */
  password: 'password',
  /** GET; `factors/{id}`: PATCH, DELETE. */
  factors: 'factors',
  /** POST: begins an enrolment. */
  totp: 'factors/totp',
  /** POST. */
  confirmTotp: 'factors/totp/confirm',
  /** POST: begins an enrolment. */
  passkey: 'factors/passkey',
  /** POST. */
  confirmPasskey: 'factors/passkey/confirm',
  /** POST: replaces all recovery codes. */
  recoveryCodes: 'recovery-codes',
  /** GET, by a browser: signs in again, then redirects back to the portal. */
  stepUp: 'step-up',
} as const
