import type { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { issuerIdentity } from '#identity/identity.ts'
import type { Subject } from '#identity/subject.ts'

/** A service account's pod, or a subject of an OpenID Connect issuer, proven by its token. */
export interface Workload {
  /** The name of the cluster or of the issuer that it is from. */
  readonly source: string
  /** Undefined, like `account`, if it is not a service account. */
  readonly namespace: string | undefined
  readonly account: string | undefined
  /** `system:serviceaccount:<namespace>:<name>`, or `<issuer>:<sub>`. */
  readonly username: string
  readonly podUid: string | undefined
  /** What rules, subjects and claims read. */
  readonly attributes: Attributes
  /** The expiry of the token that proved it. */
  readonly expires: Date
  /** The API server was unavailable, and only the signature proves it. */
  readonly offline: boolean
  /** Proven by the keys of an issuer, without an API server. */
  readonly byIssuer?: true
}

const directory = Dn.parse('ou=sts,o=Tremolo')

/** The workload as rules see it. */
export function workloadSubject({
  source,
  username,
  attributes,
}: Pick<Workload, 'source' | 'username' | 'attributes'>): Subject {
  const identity = issuerIdentity(source, username)
  return { dn: directory.child('sub', username).claimed(), identity, uid: username, attributes, level: 0, chain: 'sts' }
}
