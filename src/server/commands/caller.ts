import { anonymous } from '#engine/pipeline/authenticate.ts'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { ownIdentity } from '#identity/identity.ts'
import type { Subject } from '#identity/subject.ts'

/**
 * The caller that `--as NAME=VALUE` describes; anonymous when nothing is given. Without `dn=`, its name is made of
 * `uid=`, or of the first attribute, below the directory's root. Without `dn=` and `uid=`, the attributes are a token's
 * claims, in which letter case counts. Throws an Error for what is not NAME=VALUE.
 */
export function parseCaller(pairs: readonly string[], directoryRoot: Dn): Subject {
  if (pairs.length === 0) return anonymous
  const attributes = new Attributes()
  let dn: Dn | undefined
  let level: number | undefined
  for (const pair of pairs) {
    const equals = pair.indexOf('=')
    if (equals < 1) throw new Error(`--as takes NAME=VALUE, not "${pair}"`)
    const [name, value] = [pair.slice(0, equals), pair.slice(equals + 1)]
    if (name === 'dn') dn = Dn.parse(value)
    else if (name === 'level') level = Number(value)
    else attributes.add(name, [value])
  }
  if (level !== undefined && !Number.isInteger(level)) throw new Error('--as level= takes a whole number')
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
