import { Attributes } from '#identity/attributes.ts'
import type { DirectoryLink } from '#identity/directory-link.ts'
import { Dn } from '#identity/dn.ts'
import { restoreFilter, storeFilter } from '#identity/filter/stored-filter.ts'
import { storedIdentity } from '#identity/identity.ts'
import type { Subject } from '#identity/subject.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'

/** A subject as a session keeps it. */
export function storeSubject(subject: Subject): JsonObject {
  return {
    dn: subject.dn.toString(),
    identity: subject.identity,
    otherNames: (subject.otherNames ?? []).map(String),
    uid: subject.uid,
    attributes: storeAttributes(subject.attributes),
    level: subject.level,
    chain: subject.chain,
    ...(subject.link === undefined ? {} : { link: storeLink(subject.link) }),
  }
}

/** Undefined when the data is not a subject, as after a change of format: the session then counts as absent. */
export function restoreSubject(data: JsonObject): Subject | undefined {
  const { dn, identity, otherNames, uid, attributes, level, chain } = data
  if (typeof dn !== 'string' || typeof uid !== 'string' || typeof level !== 'number' || typeof chain !== 'string') {
    return undefined
  }
  if (typeof identity !== 'string' || !Array.isArray(attributes) || !Array.isArray(otherNames)) return undefined
  const link = restoreLink(data['link'])
  if (link === undefined && data['link'] !== undefined) return undefined
  return {
    dn: Dn.parse(dn),
    identity: storedIdentity(identity),
    otherNames: otherNames.map((name) => Dn.parse(String(name))),
    uid,
    attributes: restoreAttributes(attributes),
    level,
    chain,
    ...(link === undefined ? {} : { link }),
  }
}

const storeAttributes = (attributes: Attributes): JsonValue[] =>
  Array.from(attributes, ([name, values]) => [name, [...values]])

const restoreAttributes = (stored: readonly JsonValue[]): Attributes =>
  Attributes.from(
    stored.flatMap((pair) => {
      const [name, values] = Array.isArray(pair) ? pair : []
      return Array.isArray(values) ? [[String(name), values.map(String)] as const] : []
    }),
  )

const storeLink = ({ dn, filter, id, uidAttr, added }: DirectoryLink): JsonObject => ({
  dn: dn.toString(),
  filter: storeFilter(filter),
  id: id ?? null,
  uidAttr: uidAttr ?? null,
  added: storeAttributes(added),
})

function restoreLink(stored: JsonValue | undefined): DirectoryLink | undefined {
  if (stored === undefined || !isJsonObject(stored)) return undefined
  const { dn, filter: kept, id, uidAttr, added } = stored
  const filter = typeof kept === 'string' ? restoreFilter(kept) : undefined
  if (typeof dn !== 'string' || filter === undefined || !Array.isArray(added)) return undefined
  return {
    dn: Dn.parse(dn),
    filter,
    id: typeof id === 'string' ? id : undefined,
    uidAttr: typeof uidAttr === 'string' ? uidAttr : undefined,
    added: restoreAttributes(added),
  }
}
