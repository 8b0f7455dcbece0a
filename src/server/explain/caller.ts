import type { DescribedCaller } from '#features/portal/access/configuration-access.ts'
import { Attributes } from '#identity/attributes.ts'
import type { Dn } from '#identity/dn.ts'
import { ownIdentity } from '#identity/identity.ts'
import type { Subject } from '#identity/subject.ts'
import { anonymous } from '#requests/pipeline/authenticate.ts'

/**
 * The caller that the description means; anonymous if it is empty. Without `dn`, the caller's name is derived from
 * `uid`, or from the first attribute, below the root of the directory. Without `dn` and `uid`, the attributes are
 * claims of a token, whose letter case counts.
 */
export function explainedCaller({ attributes: given, dn, level }: DescribedCaller, directoryRoot: Dn): Subject {
  if (given.size === 0 && dn === undefined && level === undefined) return anonymous
  const attributes = new Attributes()
  for (const [name, values] of given) attributes.add(name, values)
  const [naming = ['uid', ['unknown']] as const] = [...attributes]
  const uid = attributes.first('uid') ?? dn?.rdns[0]?.[0]?.value ?? naming[1][0] ?? 'unknown'
  const isOfDirectory = dn !== undefined || attributes.has('uid')
  const name = directoryRoot.child(attributes.has('uid') ? 'uid' : naming[0], uid)
  return {
    dn: dn ?? (isOfDirectory ? name : name.claimed()),
    identity: ownIdentity('command line'),
    uid,
    attributes: isOfDirectory ? attributes : attributes.claimed(),
    level: level ?? Number.MAX_SAFE_INTEGER,
    chain: '',
  }
}
