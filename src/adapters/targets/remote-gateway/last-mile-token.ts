import { createCipheriv, randomBytes, randomInt } from 'node:crypto'

interface LastMileOptions {
  /** The path of the call, which the token is bound to. */
  readonly path: string
  readonly attribute: string
  readonly user: string
  readonly now: Date
  /** The token is valid this long before and after `now`. */
  readonly skewMillis: number
}

/** A token in OpenUnison's LastMile format: a JSON text, encrypted with AES-CBC by a key that both gateways know. */
export function lastMileToken(key: Buffer, { path, attribute, user, now, skewMillis }: LastMileOptions): string {
  const at = (millis: number): string => new Date(now.getTime() + millis).toISOString()
  const content = {
    id: String(randomInt(2 ** 48 - 1)),
    notBefore: at(-skewMillis),
    notAfter: at(skewMillis),
    uri: decoded(path),
    loginLevel: 0,
    authChain: 'oauth2',
    attrs: [{ name: attribute, values: [user] }],
  }
  const iv = randomBytes(16)
  const cipher = createCipheriv(`aes-${key.length * 8}-cbc`, key, iv)
  const encrypted = Buffer.concat([cipher.update(JSON.stringify(content), 'utf8'), cipher.final()])
  const token = { iv: iv.toString('base64'), encryptedRequest: encrypted.toString('base64') }
  return Buffer.from(JSON.stringify(token)).toString('base64')
}

/** A path with a lone percent sign stays as it is. */
function decoded(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

/** Throws an Error for anything but an AES key in base64. */
export function readLastMileKey(text: string): Buffer {
  const key = Buffer.from(text, 'base64')
  const isBase64 = /^[A-Za-z0-9+/]+={0,2}$/.test(text)
  if (isBase64 && [16, 24, 32].includes(key.length)) return key
  throw new Error('must be an AES key of 16, 24 or 32 bytes, in base64')
}
