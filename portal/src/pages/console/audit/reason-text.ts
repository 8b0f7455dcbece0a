/** A reason as people read it. Entries of logins, tokens and keys have an object in JSON: `address: 10.0.0.7, agent: curl/8`. */
export function reasonText(reason: string): string {
  if (!reason.startsWith('{')) return reason
  try {
    const members = Object.entries<unknown>(JSON.parse(reason))
    return members
      .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
      .join(', ')
  } catch {
    // A text that was cut, or that only looks like JSON.
    return reason
  }
}
