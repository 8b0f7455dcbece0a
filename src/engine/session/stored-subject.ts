import type { ChainStep } from '#engine/pipeline/chain.ts'
import { Attributes } from '#identity/attributes.ts'
import type { DirectoryLink } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import { restoreFilter, storeFilter } from '#identity/filter/stored-filter.ts'
import { storedIdentity } from '#identity/identity.ts'
import type { Subject } from '#identity/subject.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'

/** A subject as a session stores it. */
export function storeSubject(subject: Subject): JsonObject {
  return {
    dn: storeName(subject.dn),
    identity: subject.identity,
    otherNames: (subject.otherNames ?? []).map(storeName),
    uid: subject.uid,
    attributes: storeAttributes(subject.attributes),
    level: subject.level,
    chain: subject.chain,
    ...(subject.link === undefined ? {} : { link: storeLink(subject.link) }),
  }
}

/** Undefined for anything else, as after a change of format: the session then counts as absent. */
export function restoreSubject(data: JsonObject): Subject | undefined {
  const { dn, identity, otherNames, uid, attributes, level, chain } = data
  const name = restoreName(dn)
  if (name === undefined || typeof uid !== 'string' || typeof level !== 'number' || typeof chain !== 'string') {
    return undefined
  }
  if (typeof identity !== 'string' || !Array.isArray(attributes) || !Array.isArray(otherNames)) return undefined
  const link = restoreLink(data['link'])
  if (link === undefined && data['link'] !== undefined) return undefined
  return {
    dn: name,
    identity: storedIdentity(identity),
    otherNames: otherNames.flatMap((other) => restoreName(other) ?? []),
    uid,
    attributes: restoreAttributes(attributes),
    level,
    chain,
    ...(link === undefined ? {} : { link }),
  }
}

const storeName = (dn: Dn): JsonValue => (dn.isClaimed ? { claimed: dn.toString() } : dn.toString())

function restoreName(stored: JsonValue | undefined): Dn | undefined {
  if (typeof stored === 'string') return Dn.parse(stored)
  const claimed = isJsonObject(stored) ? stored['claimed'] : undefined
  return typeof claimed === 'string' ? Dn.parse(claimed).claimed() : undefined
}

/** Claims of a token have a third part. */
const storeAttributes = (attributes: Attributes): JsonValue[] =>
  Array.from(attributes, ([name, values]) => [name, [...values], ...(attributes.isClaim(name) ? ['claim'] : [])])

function restoreAttributes(stored: readonly JsonValue[]): Attributes {
  const attributes = new Attributes()
  for (const one of stored) {
    const [name, values, origin] = Array.isArray(one) ? one : []
    if (!Array.isArray(values)) continue
    if (origin === 'claim') attributes.setClaim(String(name), values.map(String))
    else attributes.set(String(name), values.map(String))
  }
  return attributes
}

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

export const storeSteps = (steps: readonly ChainStep[]): JsonValue[] =>
  steps.map(({ chain, link, name }) => ({ chain, link, name }))

/** None if absent, as in older sessions; undefined for invalid data. */
export function restoreSteps(stored: JsonValue | undefined): readonly ChainStep[] | undefined {
  if (stored === undefined) return []
  if (!Array.isArray(stored)) return undefined
  const steps = (stored as readonly JsonValue[]).map((step) => {
    if (!isJsonObject(step)) return undefined
    const { chain, link, name } = step
    const isStep = typeof chain === 'string' && typeof link === 'number' && typeof name === 'string'
    return isStep ? { chain, link, name } : undefined
  })
  return steps.every((step) => step !== undefined) ? steps : undefined
}
