/** The pictures that pages show, by media type, with a test of the content. */
const kinds: Readonly<Record<string, (bytes: Buffer) => boolean>> = {
  'image/png': (bytes) => bytes.subarray(0, 8).equals(Buffer.from('89504e470d0a1a0a', 'hex')),
  'image/jpeg': (bytes) => bytes.subarray(0, 3).equals(Buffer.from('ffd8ff', 'hex')),
  'image/webp': (bytes) => bytes.toString('latin1', 0, 4) === 'RIFF' && bytes.toString('latin1', 8, 12) === 'WEBP',
  'image/svg+xml': (bytes) =>
    /^\s*</.test(bytes.toString('utf8', 0, 256)) && /<svg[\s>]/.test(bytes.toString('utf8', 0, 4_096)),
}

/** The most bytes of a picture: pages contain it. */
const maxBytes = 64 * 1_024

/**
 * A picture as a data URI in base64. The type is that of the content. Pages show it in `img` elements only, where an
 * SVG runs no script and loads nothing. Throws an Error for people if it isn't a picture, or is too large.
 */
export function pictureUri(bytes: Buffer): string {
  if (bytes.length > maxBytes) throw new Error(`is larger than ${maxBytes / 1_024} KB`)
  const type = Object.keys(kinds).find((kind) => kinds[kind]?.(bytes))
  if (type === undefined) throw new Error('is not a PNG, JPEG, WebP or SVG picture')
  return `data:${type};base64,${bytes.toString('base64')}`
}

/** The same from a data URI, in base64 or percent-encoded. */
export function readPictureUri(written: string): string {
  const [, type, base64, content = ''] =
    /^data:([^;,]+)(?:;charset=utf-8)?(;base64)?,(.*)$/is.exec(written.trim()) ?? []
  if (type === undefined) throw new Error('is not a data URI such as data:image/svg+xml;base64,…')
  if (content.length > 4 * maxBytes) throw new Error(`is larger than ${maxBytes / 1_024} KB`)
  const uri = pictureUri(base64 === undefined ? Buffer.from(decoded(content)) : Buffer.from(content, 'base64'))
  if (!uri.startsWith(`data:${type.toLowerCase()};`)) throw new Error(`is not a picture of the type ${type}`)
  return uri
}

function decoded(content: string): string {
  try {
    return decodeURIComponent(content)
  } catch {
    throw new Error('has an invalid percent-encoding')
  }
}

/** The first bytes of every PNG, followed only by base64. */
const pngInBase64 = /^iVBORw0KGgo[A-Za-z0-9+/]*={0,2}$/

/** The icon of a link: a PNG in bare base64, as OpenUnison has it, or a data URI. Throws as above. */
export function readIcon(written: string): string {
  if (written.trimStart().startsWith('data:')) return readPictureUri(written)
  const base64 = written.replaceAll(/\s/g, '')
  if (!pngInBase64.test(base64)) throw new Error('is not a PNG picture in base64, nor a data URI of a picture')
  return base64
}
