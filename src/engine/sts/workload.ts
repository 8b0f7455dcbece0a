import type { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { issuerIdentity } from '#identity/identity.ts'
import type { Subject } from '#identity/subject.ts'

/** A service account's pod, proven by its token. */
export interface Workload {
  readonly cluster: string
  readonly namespace: string
  readonly account: string
  /** `system:serviceaccount:<namespace>:<name>` */
  readonly username: string
  readonly podUid: string | undefined
  /** What rules, subjects and claims read. */
  readonly attributes: Attributes
  /** When the token that proved it ends. */
  readonly expires: Date
  /** The API server was away, and only the signature speaks for it. */
  readonly offline: boolean
}

const directory = Dn.parse('ou=sts,o=Tremolo')

/** The workload as rules see it. */
export function workloadSubject({ username, attributes }: Pick<Workload, 'username' | 'attributes'>): Subject {
  const identity = issuerIdentity(attributes.first('cluster') ?? '', username)
  return { dn: directory.child('sub', username).claimed(), identity, uid: username, attributes, level: 0, chain: 'sts' }
}
