import { createHash } from 'node:crypto'

const validLabel = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/
const longestName = 253

/**
 * The name of the object that a login is kept in. Logins that differ in ASCII letter case only share one; no others do.
 * It is the predecessor's name, where the API server takes it: letters, dots and hyphens as they are, every other UTF-16
 * unit as `x-<decimal>-x`, so that digits stand nowhere else. Otherwise it is a hash.
 */
export function objectName(login: string): string {
  const folded = foldLogin(login)
  const name = folded.replace(/[^a-z.-]/g, (unit) => `x-${unit.charCodeAt(0)}-x`)
  const isValid = name.length <= longestName && name.split('.').every((label) => validLabel.test(label))
  return isValid ? name : `u-${createHash('sha256').update(folded).digest('hex')}`
}

/** Logins are compared in this form. */
export const foldLogin = (login: string): string => login.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
