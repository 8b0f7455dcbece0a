import type { SendOutcome } from '#sdk/notifier/notifier.ts'

/** Failures that are about this one mail; all others are about the server or the way there, and pass. */
const aboutTheMail = new Set(['EENVELOPE', 'EMESSAGE'])
const maxReasonLength = 300

/**
 * What a failed attempt means: refused for good only where the server says so of this very mail. Without a word of the
 * server about a mail that was given out whole, nobody knows.
 */
export function sendOutcome(error: unknown, givenOut: boolean): SendOutcome {
  const fields: Readonly<Record<string, unknown>> = typeof error === 'object' && error !== null ? { ...error } : {}
  const { code, responseCode, command } = fields
  const said = error instanceof Error ? error.message : String(error)
  const reason = said.replace(/[\p{Cc}\s]+/gu, ' ').slice(0, maxReasonLength)
  if (givenOut && typeof responseCode !== 'number') return { kind: 'unknown', reason }
  const permanent = typeof responseCode === 'number' ? responseCode >= 500 && responseCode < 600 : command === 'API'
  return { kind: aboutTheMail.has(String(code)) && permanent ? 'refused' : 'failed', reason }
}
