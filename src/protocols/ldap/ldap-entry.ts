import type { Entry } from 'ldapts'
import { GatewayError } from '#kernel/errors.ts'

/** An entry from the server: every value is bytes. */
export interface LdapEntry {
  readonly dn: string
  readonly attributes: readonly (readonly [name: string, values: readonly Buffer[]])[]
}

/** Requests every attribute as bytes: decoding is done here, where no byte order mark gets lost. */
class EveryName extends Array<string> {
  override includes(): boolean {
    return true
  }
}

export const asBytes: string[] = new EveryName()

export function readEntry(entry: Entry): LdapEntry {
  const attributes: [string, Buffer[]][] = []
  for (const [name, value] of Object.entries(entry)) {
    if (name === 'dn') continue
    const values = (Array.isArray(value) ? value : [value]).map((one) =>
      Buffer.isBuffer(one) ? one : Buffer.from(one),
    )
    if (values.length > 0) attributes.push([name, values])
  }
  return { dn: dnOf(entry), attributes }
}

/** ldapts lets an attribute `dn` replace the name of the entry. */
export function dnOf({ dn }: { readonly dn: unknown }): string {
  if (typeof dn === 'string') return dn
  throw new GatewayError('TARGET_FAILED', 'search: an entry has an attribute "dn", which hides its name')
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Attributes that are bytes on all servers. */
export const binaryByNature: readonly string[] = [
  'jpegPhoto',
  'thumbnailPhoto',
  'audio',
  'photo',
  'objectGUID',
  'objectSid',
  'userCertificate',
]

/** Never read, even if a server shows them. */
const passwords = new Set(['userpassword', 'unicodepwd', 'ntpassword', 'sambantpassword', 'sambalmpassword'])

/**
 * The attributes as texts: base64 for binary ones, and for those that are not text after all. Passwords are left
 * out.
 */
export function textsOf(
  { attributes }: LdapEntry,
  isBinary: (name: string) => boolean,
): (readonly [name: string, values: readonly string[]])[] {
  const bytes = (name: string) => isBinary(name) || /;binary$/i.test(name)
  return attributes
    .filter(([name]) => !passwords.has(name.toLowerCase()))
    .map(([name, values]) => [name, bytes(name) ? values.map(base64) : values.map(textOf)])
}

const base64 = (value: Buffer): string => value.toString('base64')

function textOf(value: Buffer): string {
  try {
    return utf8.decode(value)
  } catch {
    return base64(value)
  }
}

/** RFC 4512 2.5: a name or an OID, with options. Any other name has no values on any server. */
export const isAttributeDescription = (text: string): boolean =>
  text.length <= 256 && /^(?:[A-Za-z][A-Za-z0-9-]*|\d+(?:\.\d+)+)(?:;[A-Za-z0-9-]+)*$/.test(text)
