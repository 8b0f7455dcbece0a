import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isAttributeDescription } from '#protocols/ldap/attribute-description.ts'
import { type LdapEntry, textsOf } from '#protocols/ldap/ldap-entry.ts'
import { resultCodeOf, resultCodes } from '#protocols/ldap/ldap-failure.ts'
import { tryDn } from './dn-pattern.ts'
import type { LdapLayout } from './ldap-config.ts'

/** Bytes of a name's own part from which on a server may have no room for it. */
const longName = 128

/** An entry as texts, with the parts that are not attributes of the user or group. */
export interface ReadEntry {
  readonly dn: string
  readonly all: Attributes
}

export function readValues(entry: LdapEntry, { binary }: LdapLayout): ReadEntry {
  return { dn: entry.dn, all: Attributes.from(textsOf(entry, (name) => binary.has(name.toLowerCase()))) }
}

/** The values as the server takes them. BAD_REQUEST, naming the attribute, for what no server can hold. */
export function wireValues(name: string, values: readonly string[], { binary }: LdapLayout): (string | Buffer)[] {
  if (!isAttributeDescription(name)) throw unfit(name, 'cannot be an attribute’s name')
  const unique = [...new Set(values)]
  if (binary.has(name.toLowerCase()) || /;binary$/i.test(name)) return unique.map((value) => fromBase64(name, value))
  for (const value of unique) if (!value.isWellFormed()) throw unfit(name, 'has half a surrogate pair')
  return unique
}

/** The identifier as it is told: binary ones in hex, since they stand in addresses. */
export function idOf({ all }: ReadEntry, { id, binary }: LdapLayout): string | undefined {
  const value = id === undefined ? undefined : all.first(id)
  if (value === undefined || id === undefined || !binary.has(id.toLowerCase())) return value
  return Buffer.from(value, 'base64').toString('hex')
}

/** What the identifier is compared with; undefined for a text that cannot be one. */
export function idValue(id: string, { id: attribute = '', binary }: LdapLayout): string | Buffer | undefined {
  if (!binary.has(attribute.toLowerCase())) return id.isWellFormed() ? id : undefined
  return /^(?:[0-9a-f]{2}){1,64}$/i.test(id) ? Buffer.from(id, 'hex') : undefined
}

/** `20261115073218.067424Z` (RFC 4517 3.3.13), as servers write it. */
export function generalizedTime(text: string | undefined): Date | undefined {
  const match = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(?:[.,]\d+)?Z$/.exec(text ?? '')
  if (match === null) return undefined
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = match.slice(1).map(Number)
  return new Date(Date.UTC(year, month - 1, day, hour, minute, second))
}

/** The second of a time, as servers compare it. */
export const generalizedText = (millis: number): string =>
  `${new Date(millis).toISOString().slice(0, 19).replace(/[-:T]/g, '')}Z`

/** The name's own part, as a name of one part. */
export const ownPart = (dn: Dn): Dn => new Dn(dn.rdns.slice(0, 1))

/** The entry's name once it has the own part of `wanted`: it stays where it is, wherever new ones would go. */
export function renamedDn(dn: string, wanted: Dn): Dn {
  const parent = tryDn(dn)?.parent
  return parent === undefined ? wanted : new Dn([...ownPart(wanted).rdns, ...parent.rdns])
}

/** OpenLDAP says "other" and no more where a name is too long for its index. */
export function nameFailure(error: unknown, dn: Dn, place: string): unknown {
  const isLong = Buffer.byteLength(ownPart(dn).toString()) > longName
  return isLong && resultCodeOf(error) === resultCodes.other ? unfit(place, 'is too long for the server', error) : error
}

export const unfit = (name: string, reason: string, cause?: unknown): GatewayError =>
  new GatewayError('BAD_REQUEST', `"${name}" ${reason}`, {
    cause,
    publicText: `The value of "${name}" cannot be stored.`,
  })

function fromBase64(name: string, value: string): Buffer {
  const bytes = Buffer.from(value, 'base64')
  if (bytes.length === 0 || bytes.toString('base64') !== value) throw unfit(name, 'is not base64')
  return bytes
}
