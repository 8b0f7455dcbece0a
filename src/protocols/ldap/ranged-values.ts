import { GatewayError } from '#kernel/errors.ts'
import type { LdapEntry } from './ldap-entry.ts'

interface Range {
  readonly attribute: string
  /** Undefined for the last part. */
  readonly end: number | undefined
}

/** A list of more parts than these has no end. */
const maxParts = 1000

/**
 * The entry with its lists whole: Active Directory gives long ones in parts, as `member;range=0-1499` (MS-ADTS
 * 3.1.1.3.1.3.3). `read` gives the entry with another part. TARGET_FAILED where one is missing: a part is never told for
 * the whole.
 */
export async function withWholeLists(
  entry: LdapEntry,
  read: (attribute: string) => Promise<LdapEntry | undefined>,
): Promise<LdapEntry> {
  if (!entry.attributes.some(([name]) => rangeOf(name) !== undefined)) return entry
  const attributes: [string, readonly Buffer[]][] = []
  for (const [name, values] of entry.attributes) {
    const range = rangeOf(name)
    attributes.push(range === undefined ? [name, values] : [range.attribute, await whole(range, values, read)])
  }
  return { dn: entry.dn, attributes }
}

async function whole(
  { attribute, end: first }: Range,
  values: readonly Buffer[],
  read: (attribute: string) => Promise<LdapEntry | undefined>,
): Promise<readonly Buffer[]> {
  const all = [...values]
  let end = first
  for (let parts = 1; end !== undefined; parts++) {
    const entry = parts > maxParts ? undefined : await read(`${attribute};range=${end + 1}-*`)
    const part = entry?.attributes.find(([name]) => rangeOf(name)?.attribute === attribute)
    const next = part === undefined ? undefined : rangeOf(part[0])
    if (part === undefined || next === undefined || (next.end !== undefined && next.end <= end)) {
      throw new GatewayError('TARGET_FAILED', `search: the values of "${attribute}" cannot be read to their end`)
    }
    for (const value of part[1]) all.push(value)
    end = next.end
  }
  return all
}

function rangeOf(name: string): Range | undefined {
  const [, attribute, end] = /^(.+);range=\d{1,9}-(\d{1,9}|\*)$/i.exec(name) ?? []
  if (attribute === undefined) return undefined
  return { attribute, end: end === '*' ? undefined : Number(end) }
}
