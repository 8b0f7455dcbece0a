import type { Dn } from '#identity/dn.ts'
import type { Identity, UserRef } from '#identity/identity.ts'
import { callerRef, type Subject } from '#identity/subject.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { Foreseen } from '#sdk/foreseen.ts'

/** The user who decides or asks, and where their entry was when they logged in. */
export interface ApprovalUser extends UserRef {
  readonly dn?: Dn
}

/** The authenticated caller of a request. */
export const approvalUser = (
  subject: Pick<Subject, 'identity' | 'uid' | 'dn' | 'attributes' | 'link'>,
): ApprovalUser => ({ ...callerRef(subject), dn: subject.dn })

export type ApprovalStatus = 'open' | 'approved' | 'denied' | 'cancelled'

/** A line in a list of approvals. */
export interface ApprovalItem {
  readonly id: string
  readonly label: string
  readonly status: ApprovalStatus
  readonly workflow: { readonly id: string; readonly name: string }
  readonly subject: string
  readonly requestor: string
  /** The authenticated caller, where that is another than the requestor. */
  readonly caller?: string
  readonly reason?: string
  /** When access that is given is to end. */
  readonly accessEnds?: Date
  /** A registration: what was submitted counts, even if another user has the login by now. */
  readonly newAccount?: boolean
  readonly opened: Date
  /** How many escalations there were. */
  readonly escalation: number
  /** Changes when the approval is given to others or decided. */
  readonly version: number
}

/** An approval as an administrator sees it, who need not know what it is about. */
export interface ApprovalRecord extends ApprovalItem {
  readonly approvers: readonly string[]
  readonly decision?: {
    readonly at: Date
    readonly by?: string
    readonly identity?: Identity
    readonly onBehalfOf?: string
    readonly comment?: string
  }
}

/** What somebody who may decide is shown. It holds no secrets. */
export interface ApprovalView extends ApprovalRecord {
  /** The request as it stood when the approval was opened: `attributes`, `groups`, `parameters`. */
  readonly data: JsonObject
  /** For whom the one who asks would decide; absent in the own name. */
  readonly onBehalfOf?: string
  /** False for whoever asked for it or is the subject, and when it is no longer open. */
  readonly mayDecide: boolean
}

/** Which values of a registration another user has already, at the time of the look-up. */
export interface ExistingAccount {
  readonly login: boolean
  /** The unique attributes, beside the login, that a user of the directory has with the same value. */
  readonly attributes: readonly string[]
}

export interface ApprovalItems {
  /** Oldest first; maybe fewer than were asked for. */
  readonly approvals: readonly ApprovalItem[]
  /** Where the following page starts; absent on the last one. */
  readonly next?: string
}

export interface ApprovalVote {
  readonly approval: string
  /** Only while the approval has this version; VERSION_MISMATCH otherwise. */
  readonly version?: number
  readonly approve: boolean
  /** At most 2,000 characters. */
  readonly comment?: string
  /** The HTTP request that decides, as in the access log. */
  readonly requestId?: string
}

/** For a time another may decide in one's place, and nobody in theirs: a deputy's deputy is none. */
export interface DeputyPeriod {
  readonly id: string
  readonly login: string
  readonly deputy: string
  readonly starts: Date
  readonly ends: Date
}

/** What modules may do with approvals, on behalf of the user they name. */
export interface ApprovalAccess {
  /** Of one run, oldest first, at most 100. Whoever calls has checked who may see them. */
  ofRun(run: string): Promise<readonly ApprovalRecord[]>
  /** Open ones that the user may decide, in their own name or for somebody they deputise for. Limit: at most 500. */
  list(user: ApprovalUser, page: { readonly after?: string; readonly limit: number }): Promise<ApprovalItems>
  /** Undefined when there is none or the user may not see it. */
  get(user: ApprovalUser, id: string): Promise<ApprovalView | undefined>
  /**
   * What would follow if the user approved it now; undefined where the user may not decide it. Throws TOO_MANY_REQUESTS
   * while the user, or all together, are being told of too many.
   */
  foresee(user: ApprovalUser, id: string): Promise<Foreseen | undefined>
  /**
   * Whether the account that a registration is to create exists by now; undefined where the approval isn't for a
   * registration, is not open, or the user may not see it. Throws what the directory throws.
   */
  existing(user: ApprovalUser, id: string): Promise<ExistingAccount | undefined>
  /**
   * Decides, once. Throws NOT_FOUND if the user may not see the approval, ACCESS_DENIED if the user is its requester or
   * subject, CONFLICT if another approver decided first, BAD_REQUEST for a comment that is too long, UNPROCESSABLE for
   * approving access whose expiry date has passed, which can still be denied, and ACCOUNT_EXISTS for approving a
   * registration whose account exists by now, which ends the registration.
   */
  decide(user: ApprovalUser, vote: ApprovalVote): Promise<ApprovalView>
  /** The user is out of office. BAD_REQUEST for a period or a deputy that is none. */
  delegate(user: ApprovalUser, period: Omit<DeputyPeriod, 'id' | 'login'>): Promise<DeputyPeriod>
  /** The user's own periods that have not ended, at most 100. */
  delegations(user: ApprovalUser): Promise<readonly DeputyPeriod[]>
  /** Throws NOT_FOUND when the user has none of that id. */
  endDelegation(user: ApprovalUser, id: string): Promise<void>
  /** Whom the user may decide for now. */
  represents(user: ApprovalUser): Promise<readonly string[]>
}
