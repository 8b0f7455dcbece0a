import { isSecretName } from '#kernel/redaction.ts'

const keyName = /(?:key|otp|pin)$/i

/** True for attributes whose values stay out of the audit and the log: passwords, tokens, keys and one-time codes. */
export const isSecretAttribute = (name: string): boolean => isSecretName(name) || keyName.test(name)
