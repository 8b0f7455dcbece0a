const hidden = '[redacted]'

const begin = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g
const whole =
  /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|$)/g
const end = /-----END [A-Z0-9 ]{0,40}PRIVATE KEY/g
/** Lines of a key, also where each one is in a line of a log, and the last one, which is short. */
const body = /[A-Za-z0-9+/]{16,}={0,2}|(?<![^\n])[A-Za-z0-9+/=]+(?=\r?\n$)/g
const isBody = /^\s*[A-Za-z0-9+/]{16,}={0,2}\s*$/
/** `-----BEGIN` in base64. */
const inBase64 = /LS0tLS1CRUdJTi[A-Za-z0-9+/=_-]+(?:\r?\n[ \t]*[A-Za-z0-9+/=_-]+(?=\r?\n|$))*/g

/** The text without private keys as PEM, plain and in base64, and without the rest of a key that began before the text. */
export function withoutPrivateKeys(text: string): string {
  const shown = text.replace(inBase64, (found) => (isPrivate(found) ? hidden : found)).replace(whole, hidden)
  // The last lines of a log may begin within a key.
  const last = Array.from(shown.matchAll(end)).at(-1)?.index ?? 0
  return shown.slice(0, last).replace(body, hidden) + shown.slice(last)
}

const isPrivate = (base64: string): boolean => Buffer.from(base64.slice(0, 100), 'base64').includes('PRIVATE')

/**
 * The texts that belong to a key that is split over several of them, as people do with values of one line each. `texts`
 * are in the order of the document, which may have sorted them by their names.
 */
export function partsOfKeys(texts: readonly string[]): ReadonlySet<string> {
  const parts = new Set<string>()
  let inKey = false
  for (const text of texts) {
    const [begins, ends] = [text.match(begin)?.length ?? 0, text.match(end)?.length ?? 0]
    if (inKey || begins > ends) parts.add(text)
    if (begins !== ends) inKey = begins > ends
  }
  if (parts.size > 0) for (const text of texts) if (isBody.test(text)) parts.add(text)
  return parts
}
