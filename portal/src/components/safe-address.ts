/** The address, if a browser can open it without running code; undefined otherwise. */
export function safeAddress(written: string, base: string): string | undefined {
  if (!URL.canParse(written, base)) return undefined
  const { protocol, href } = new URL(written, base)
  return protocol === 'https:' || protocol === 'http:' || protocol === 'mailto:' ? href : undefined
}

const png = /^[A-Za-z0-9+/]+={0,2}$/

const picture = /^data:image\/(?:png|jpeg|webp|svg\+xml);base64,[A-Za-z0-9+/]+={0,2}$/

/** The icon of a link as an image: bare base64 is a PNG. Undefined if there is none. */
export function iconAddress(icon: string): string | undefined {
  if (picture.test(icon)) return icon
  return png.test(icon) ? `data:image/png;base64,${icon}` : undefined
}
