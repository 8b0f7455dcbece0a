import type { SendOutcome } from '#sdk/notifier.ts'

/** Failures that are about this one mail; all others are about the server or the way there, and pass. */
const aboutTheMail = new Set(['EENVELOPE', 'EMESSAGE'])
const maxReasonLength = 300

/** What a failed attempt means: refused for good only where the server says so of this very mail. */
export function sendOutcome(error: unknown): SendOutcome {
  const fields: Readonly<Record<string, unknown>> = typeof error === 'object' && error !== null ? { ...error } : {}
  const { code, responseCode, command } = fields
  const said = error instanceof Error ? error.message : String(error)
  const reason = said.replace(/[\p{Cc}\s]+/gu, ' ').slice(0, maxReasonLength)
  const permanent = typeof responseCode === 'number' ? responseCode >= 500 && responseCode < 600 : command === 'API'
  return { kind: aboutTheMail.has(String(code)) && permanent ? 'refused' : 'failed', reason }
}
