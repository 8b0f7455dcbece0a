import type { Attributes } from '#identity/attributes.ts'
import type { DirectoryLink } from '#identity/directory-link.ts'
import type { Dn } from '#identity/dn.ts'

/** Who makes a request, after its authentication chain ran. Rules are evaluated on this and on nothing else. */
export interface Subject {
  readonly dn: Dn
  /** Other names of the same entry that a dn rule may use. */
  readonly otherNames?: readonly Dn[]
  /** The login or identifier that stands in logs and in the audit. */
  readonly uid: string
  readonly attributes: Attributes
  /** Present when the directory has an entry of them. */
  readonly link?: DirectoryLink
  /** 0 is anonymous; a chain gives its own level. */
  readonly level: number
  readonly chain: string
}
