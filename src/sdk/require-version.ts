import { GatewayError } from '#kernel/errors.ts'

/** Throws VERSION_MISMATCH when a version is expected that the user or group has not. */
export function requireVersion(found: { readonly version?: string } | undefined, expected: string | undefined): void {
  if (expected === undefined || found?.version === expected) return
  throw new GatewayError('VERSION_MISMATCH', `version ${expected} was expected, and it is ${found?.version ?? 'none'}`)
}
