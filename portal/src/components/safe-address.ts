/** The address, if a browser can open it without running code; undefined otherwise. */
export function safeAddress(written: string, base: string): string | undefined {
  if (!URL.canParse(written, base)) return undefined
  const { protocol, href } = new URL(written, base)
  return protocol === 'https:' || protocol === 'http:' || protocol === 'mailto:' ? href : undefined
}

const png = /^[A-Za-z0-9+/]+={0,2}$/

/** The icon of a link as an image; undefined if there is none. */
export const iconAddress = (base64: string): string | undefined =>
  png.test(base64) ? `data:image/png;base64,${base64}` : undefined
