import type { ReportSpec } from '#config/kinds/portal.ts'
import type { UserRef } from '#identity/identity.ts'
import type { NotificationChoices, NotificationSettings } from '#mail/notification.ts'
import type { Rule } from '#sdk/rule/rule.ts'
import type { DynamicWorkflows } from '#sdk/workflow/dynamic-workflow.ts'
import type { ExpiryOffer } from '#sdk/workflow/expiry-offer.ts'

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
  /** One passing rule is enough; no rule denies. A user who may not see a branch sees nothing below it either. */
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
  /** One passing rule is enough; no rule denies. */
  readonly rules: readonly Rule[]
}

interface PortalReport {
  /** The name for requests. */
  readonly name: string
  /** Undefined for one that no one sees. */
  readonly org: string | undefined
  readonly spec: ReportSpec
}

/** A workflow as the portal shows it. */
export interface PortalWorkflow {
  readonly name: string
  readonly label: string
  readonly description: string
  /** Undefined for one of every org. */
  readonly org: string | undefined
  /** Only listed workflows may be requested. */
  readonly inList: boolean
  /** Who answers questions about it. */
  readonly owner?: string | undefined
  /** The groups whose members decide, as far as the configuration names them. */
  readonly approverGroups: readonly string[]
  /** Whether one of its approvals refuses a decision without a comment. */
  readonly commentRequired: boolean
  /** Present if the requester chooses an expiry date. */
  readonly accessEnds?: ExpiryOffer | undefined
  /** Present if it has one row per set of parameters. */
  readonly dynamic: DynamicWorkflows | undefined
}

/** Items that users mark or use. */
export interface PortalItem {
  readonly kind: 'url' | 'workflow'
  readonly name: string
}

/** A favorite or recently used item, with its time. */
export interface MarkedPortalItem extends PortalItem {
  readonly at: Date
}

/** A set of parameters that a user saw. */
export interface OfferedParameters {
  readonly workflow: string
  readonly parameters: Readonly<Record<string, string>>
}

/** What the portal remembers of users. */
export interface PortalMemory {
  /** In the order they were marked, at most 100. */
  favorites(user: UserRef): Promise<readonly MarkedPortalItem[]>
  /** False if the user has 100 already. Marking again changes nothing. */
  addFavorite(user: UserRef, item: PortalItem): Promise<boolean>
  removeFavorite(user: UserRef, item: PortalItem): Promise<void>
  /** Latest first, at most 20. */
  recent(user: UserRef): Promise<readonly MarkedPortalItem[]>
  noteUse(user: UserRef, item: PortalItem): Promise<void>
  /** The ids of notifications that the user has read. */
  readNotifications(user: UserRef): Promise<ReadonlySet<string>>
  /** Adds to them. Forgets all that are not `current`, if that is given; at most 500 are kept. */
  markRead(user: UserRef, ids: readonly string[], current?: readonly string[]): Promise<void>
  /** When the user is mailed about what; undefined if the user chose nothing. */
  notificationSettings(user: UserRef): Promise<NotificationSettings | undefined>
  /** Kinds that are absent stay as they are. */
  chooseNotifications(user: UserRef, chosen: NotificationChoices): Promise<NotificationSettings>
  /** One opaque reference for each, in order: valid for this user only, and for an hour. */
  offer(user: UserRef, offers: readonly OfferedParameters[]): Promise<readonly string[]>
  /** What was offered; undefined for a reference that is unknown, another user's or expired. */
  offered(user: UserRef, reference: string): Promise<OfferedParameters | undefined>
}

/** What a portal shows, as configured. The caller checks who may see what. */
export interface PortalAccess {
  /** Parents before children. */
  readonly orgs: readonly PortalOrg[]
  readonly urls: readonly PortalUrl[]
  readonly reports: readonly PortalReport[]
  readonly workflows: readonly PortalWorkflow[]
  readonly memory: PortalMemory
  /** Whether there is a Notifier for mails, and a job that sends digests. */
  readonly mail: { readonly isConfigured: boolean; readonly hasDigest: boolean }
}
