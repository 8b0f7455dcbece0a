import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import type { Subject } from '#identity/subject.ts'
import type { JsonObject } from '#kernel/json.ts'

/** A subject as a session keeps it. */
export function storeSubject(subject: Subject): JsonObject {
  return {
    dn: subject.dn.toString(),
    otherNames: (subject.otherNames ?? []).map(String),
    uid: subject.uid,
    attributes: Array.from(subject.attributes, ([name, values]) => [name, [...values]]),
    level: subject.level,
    chain: subject.chain,
  }
}

/** Undefined when the data is not a subject, as after a change of format: the session then counts as absent. */
export function restoreSubject(data: JsonObject): Subject | undefined {
  const { dn, otherNames, uid, attributes, level, chain } = data
  if (typeof dn !== 'string' || typeof uid !== 'string' || typeof level !== 'number' || typeof chain !== 'string') {
    return undefined
  }
  if (!Array.isArray(attributes) || !Array.isArray(otherNames)) return undefined
  return {
    dn: Dn.parse(dn),
    otherNames: otherNames.map((name) => Dn.parse(String(name))),
    uid,
    attributes: Attributes.from(attributes.map(([name, values]) => [String(name), values.map(String)] as const)),
    level,
    chain,
  }
}
