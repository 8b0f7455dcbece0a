import type { Dn } from '#identity/dn.ts'
import type { UserRef } from '#identity/identity.ts'
import { callerRef, type Subject } from '#identity/subject.ts'

/** The user who decides or reads, and the place of their entry at login. */
export interface ApprovalUser extends UserRef {
  readonly dn?: Dn
}

/** The authenticated caller of a request. */
export const approvalUser = (
  subject: Pick<Subject, 'identity' | 'uid' | 'dn' | 'attributes' | 'link'>,
): ApprovalUser => ({ ...callerRef(subject), dn: subject.dn })

/** An operator who changes a run or an approval of other users; the names are all that the directory has of them. */
export interface Operator extends ApprovalUser {
  readonly names?: readonly string[]
}

export const operatorOf = (subject: Subject): Operator => ({
  ...approvalUser(subject),
  names: [...subject.attributes.values('uid'), ...subject.attributes.values('mail')],
})
