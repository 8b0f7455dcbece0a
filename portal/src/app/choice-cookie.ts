/** Passes a choice on to the sign-in pages, which have no scripts. An empty value forgets it. */
export function writeChoiceCookie(name: string, value: string): void {
  const seconds = value === '' ? 0 : 365 * 24 * 3600
  const secure = location.protocol === 'https:' ? '; Secure' : ''
  // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API needs https, and a sign-in page needs no answer.
  document.cookie = `${name}=${value}; Path=/; SameSite=Lax; Max-Age=${seconds}${secure}`
}
