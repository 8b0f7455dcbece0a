import type { Attributes } from '#identity/attributes.ts'
import type { DirectoryLink } from '#identity/directory.ts'
import type { Dn } from '#identity/dn.ts'
import type { Identity, UserRef } from '#identity/identity.ts'

/** The caller of a request, after its authentication chain ran. Rules see only this. */
export interface Subject {
  readonly dn: Dn
  /** Other names of the same entry that a dn rule may use. */
  readonly otherNames?: readonly Dn[]
  /** Who it is. Users are compared and stored by it. */
  readonly identity: Identity
  /** The login or identifier for logs and the audit. */
  readonly uid: string
  readonly attributes: Attributes
  /** Present if the directory has an entry of the caller. */
  readonly link?: DirectoryLink
  /** 0 is anonymous; a chain sets its own level. */
  readonly level: number
  readonly chain: string
}

/** The stored reference to the caller, with the first value of the attribute, if there is one, as the login. */
export function callerRef(
  { identity, uid, attributes, link }: Pick<Subject, 'identity' | 'uid' | 'attributes' | 'link'>,
  loginAttribute?: string,
): UserRef {
  const named = loginAttribute === undefined ? undefined : attributes.first(loginAttribute)
  const readFrom = named === undefined ? link?.uidAttr : loginAttribute
  const isClaimed = readFrom !== undefined && attributes.isClaim(readFrom)
  return { identity, login: named ?? uid, ...(isClaimed ? { isClaimed } : {}) }
}
