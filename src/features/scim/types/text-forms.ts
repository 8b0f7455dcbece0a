import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { readAttribute, sameValue } from '#protocols/scim/schema/resource.ts'
import { type AttributePath, internalName, type ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { quoted, scimError } from '#protocols/scim/schema/scim-error.ts'

/** Where the resources of each type are: paths below `base`, such as `/Devices`, by the names of the types. */
export interface Addresses {
  readonly base: string
  readonly endpoints: ReadonlyMap<string, string>
}

/**
 * Throws invalidValue if a new value of type binary is not base64 (RFC 7643 2.3.6), or one of type reference is not a URI,
 * or not the address of a type that its attribute refers to (2.3.7). Whether that resource exists is not checked: it may be
 * deleted at any time, and a client that follows the reference then gets 404.
 */
export function requireTextForms(
  schema: ResourceSchema,
  addresses: Addresses,
  before: JsonObject,
  after: JsonObject,
): void {
  for (const ref of schema.attributes()) {
    const [was, is] = [readAttribute(before, ref), readAttribute(after, ref)]
    if (ref.attribute.mutability === 'readOnly' || sameValue(was, is)) continue
    const known = listOf(was)
    for (const value of listOf(is).filter((one) => !known.some((other) => sameValue(one, other)))) {
      requireForm(ref, value, addresses)
      if (!isJsonObject(value)) continue
      for (const sub of ref.attribute.subAttributes) {
        for (const part of listOf(value[sub.name])) requireForm({ ...ref, sub }, part, addresses)
      }
    }
  }
}

function requireForm(path: AttributePath, value: JsonValue, addresses: Addresses): void {
  const { type, mutability, referenceTypes = [] } = path.sub ?? path.attribute
  if (typeof value !== 'string' || mutability === 'readOnly') return
  const wrong = (wanted: string) =>
    scimError('invalidValue', `${internalName(path)}: ${quoted(value)} is not ${wanted}. Correct the value.`)
  if (type === 'binary' && !/^[A-Za-z0-9+/_-]*={0,2}$/.test(value)) throw wrong('base64')
  if (type !== 'reference') return
  if (/[\s"<>\\^`{|}]/.test(value) || !URL.canParse(value, 'https://base/')) throw wrong('a URI')
  const endpoints = referenceTypes.map((name) => addresses.endpoints.get(name))
  // A type of another service has addresses that only that service knows.
  const isKnown = endpoints.length > 0 && endpoints.every((endpoint) => endpoint !== undefined)
  if (!isKnown) {
    if (referenceTypes.length > 0 && referenceTypes.every((name) => name === 'external') && !URL.canParse(value))
      throw wrong('an absolute URI')
    return
  }
  const { base } = addresses
  const local = value.startsWith(`${base}/`) ? value.slice(base.length) : value
  const [, endpoint = ''] = /^(?:\.\.)?\/?([^/?#]+)\/[^/?#]+$/.exec(local) ?? []
  if (!endpoints.includes(`/${endpoint}`)) throw wrong(`the address of a ${referenceTypes.join(' or ')}`)
}

const listOf = (value: JsonValue | undefined): readonly JsonValue[] =>
  value === undefined ? [] : Array.isArray(value) ? value : [value as JsonValue]
