import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { entryIdentity } from '#identity/identity.ts'
import type { Subject } from '#identity/subject.ts'

export function subject(dn: string, attributes: Readonly<Record<string, readonly string[]>> = {}, level = 20): Subject {
  const parsed = Dn.parse(dn)
  return {
    dn: parsed,
    identity: entryIdentity('test', parsed.key),
    uid: parsed.rdns[0]?.[0]?.value ?? '',
    attributes: Attributes.from(attributes),
    level,
    chain: 'test',
  }
}
