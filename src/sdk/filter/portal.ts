import type { UserRef } from '#identity/identity.ts'
import type { ReportSpec } from '#model/portal.ts'
import type { Rule } from '#sdk/auth/rule.ts'
import type { AccessEndOffer } from '#sdk/workflow/access-end.ts'
import type { DynamicWorkflows } from '#sdk/workflow/dynamic-workflow.ts'

/** A branch of the organisation. */
export interface PortalOrg {
  /** Its uuid, by which others refer to it. */
  readonly id: string
  readonly name: string
  readonly description: string
  /** Undefined at the top. */
  readonly parent: string | undefined
  readonly showInPortal: boolean
  readonly showInRequest: boolean
  readonly showInReports: boolean
  /** Any passes; none denies. Whoever may not see a branch sees nothing below it either. */
  readonly rules: readonly Rule[]
}

/** A link of the front page. */
export interface PortalUrl {
  readonly name: string
  readonly label: string
  readonly url: string
  /** The id of an org; undefined for one of every org. */
  readonly org: string | undefined
  /** A PNG in base64, without white space. */
  readonly icon: string | undefined
  /** Any passes; none denies. */
  readonly rules: readonly Rule[]
}

export interface PortalReport {
  /** As it is asked for. */
  readonly name: string
  /** Undefined for one that nobody sees. */
  readonly org: string | undefined
  readonly spec: ReportSpec
}

export interface PortalWorkflow {
  readonly name: string
  readonly label: string
  readonly description: string
  /** Undefined for one of every org. */
  readonly org: string | undefined
  /** Only what is listed may be asked for. */
  readonly inList: boolean
  /** Present if the requester chooses an expiry date. */
  readonly accessEnds?: AccessEndOffer | undefined
  /** Where it stands for one row per set of parameters. */
  readonly dynamic: DynamicWorkflows | undefined
}

/** What people mark or use. */
export interface PortalItem {
  readonly kind: 'url' | 'workflow'
  readonly name: string
}

export interface MarkedPortalItem extends PortalItem {
  readonly at: Date
}

/** A set of parameters that somebody was shown. */
export interface OfferedParameters {
  readonly workflow: string
  readonly parameters: Readonly<Record<string, string>>
}

/** What the portal remembers of users. */
export interface PortalMemory {
  /** In the order they were marked, at most 100. */
  favourites(user: UserRef): Promise<readonly MarkedPortalItem[]>
  /** False when the user has 100 already. Marking again changes nothing. */
  addFavourite(user: UserRef, item: PortalItem): Promise<boolean>
  removeFavourite(user: UserRef, item: PortalItem): Promise<void>
  /** Latest first, at most 20. */
  recent(user: UserRef): Promise<readonly MarkedPortalItem[]>
  noteUse(user: UserRef, item: PortalItem): Promise<void>
  /** One opaque reference for each, in their order: good for this user alone, and for an hour. */
  offer(user: UserRef, offers: readonly OfferedParameters[]): Promise<readonly string[]>
  /** What was offered; undefined for a reference that is unknown, another's or too old. */
  offered(user: UserRef, reference: string): Promise<OfferedParameters | undefined>
}

/** What a portal shows, as the configuration has it. Whoever asks finds out who may see what. */
export interface PortalAccess {
  /** Those above stand before those below. */
  readonly orgs: readonly PortalOrg[]
  readonly urls: readonly PortalUrl[]
  readonly reports: readonly PortalReport[]
  readonly workflows: readonly PortalWorkflow[]
  readonly memory: PortalMemory
}
