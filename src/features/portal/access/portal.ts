import type { Configuration } from '#config/configuration/configuration.ts'
import type { ReportSpec } from '#config/kinds/portal.ts'
import type { UserRef } from '#identity/identity.ts'
import { newSecret, secretHash } from '#kernel/ids.ts'
import { sendsDigests } from '#mail/mail-choices.ts'
import type { NotificationChoices, NotificationSettings } from '#mail/notification.ts'
import type { NotificationStore } from '#mail/notification-store.ts'
import type { Rule } from '#sdk/rule/rule.ts'
import type { DynamicWorkflowSource, DynamicWorkflows } from '#sdk/workflow/dynamic-workflow.ts'
import type { ExpiryOffer } from '#sdk/workflow/expiry-offer.ts'
import { approverGroups, needsComment } from '#workflows/definitions/workflow-parameters.ts'
import type { PortalMark, PortalStore } from './portal-store.ts'

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
  /** What the label of a run says besides, with places for its parameters. */
  readonly runDetails?: string | undefined
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

type Shown = Pick<Configuration, 'orgs' | 'portalUrls' | 'reports' | 'workflows' | 'notifiers' | 'jobs'>

/** What a portal shows, as configured. The caller checks who may see what. */
export class Portal {
  /** Parents before children. */
  readonly orgs: readonly PortalOrg[]
  readonly urls: readonly PortalUrl[]
  readonly reports: readonly PortalReport[]
  readonly workflows: readonly PortalWorkflow[]
  readonly memory: PortalMemory
  /** Whether there is a Notifier for mails, and a job that sends digests. */
  readonly mail: { readonly isConfigured: boolean; readonly hasDigest: boolean }

  /** The sources of dynamic workflows, by workflow, may be added later. */
  constructor(
    { orgs, portalUrls, reports, workflows, notifiers, jobs }: Shown,
    sources: ReadonlyMap<string, DynamicWorkflowSource>,
    memory: PortalMemory,
  ) {
    this.memory = memory
    this.mail = {
      isConfigured: [...notifiers.values()].some(({ notifier }) => notifier.delivers === 'mails'),
      hasDigest: sendsDigests({ jobs }),
    }
    this.orgs = fromTheTop(
      Array.from(orgs.values(), ({ name, spec, rules }) => ({
        id: spec.uuid,
        name: spec.label ?? name,
        description: spec.description ?? '',
        parent: spec.parent === '' ? undefined : spec.parent,
        showInPortal: spec.showInPortal ?? true,
        showInRequest: spec.showInRequestAccess ?? true,
        showInReports: spec.showInReports ?? true,
        rules,
      })),
    )
    this.urls = Array.from(portalUrls.values(), ({ name, spec, rules }) => ({
      name,
      label: spec.label,
      url: spec.url,
      org: spec.org === '' ? undefined : spec.org,
      icon: spec.icon || undefined,
      rules,
    }))
    this.reports = Array.from(reports.values(), ({ spec }) => ({
      name: spec.name,
      org: spec.orgId === '' ? undefined : spec.orgId,
      spec,
    }))
    this.workflows = Array.from(workflows.values(), (workflow): PortalWorkflow => {
      const { name, label, runDetails, description, orgId, inList, owner, accessEnds, dynamic } = workflow
      return {
        name,
        label,
        runDetails,
        description,
        org: orgId,
        inList,
        owner,
        approverGroups: inList ? approverGroups({ workflows }, name) : [],
        commentRequired: inList && needsComment({ workflows }, name),
        accessEnds,
        dynamic: dynamic && {
          annotations: dynamic.annotations,
          parameterSets: async (subject) => {
            const source = sources.get(name)
            if (source === undefined) throw new Error(`the dynamic workflow "${name}" is not ready yet`)
            return await source.parameterSets(subject)
          },
        },
      }
    })
  }
}

/** The check of the configuration ensures that every parent exists, and that there is no circle. */
function fromTheTop(orgs: readonly PortalOrg[]): PortalOrg[] {
  const sorted: PortalOrg[] = []
  let level: readonly (string | undefined)[] = [undefined]
  while (level.length > 0) {
    const next = orgs.filter(({ parent }) => level.includes(parent))
    sorted.push(...next)
    level = next.map(({ id }) => id)
  }
  return sorted
}

const maxFavorites = 100
const maxRecent = 20
const maxRead = 500
/** Besides those created now; repeated requests for a list must not fill the database. */
const maxOffers = 20_000
const offerMillis = 60 * 60 * 1000

/** What the portal remembers of users. */
export class PortalMemory {
  readonly #store: PortalStore
  readonly #notifications: NotificationStore

  constructor(store: PortalStore, notifications: NotificationStore) {
    this.#store = store
    this.#notifications = notifications
  }

  /** In the order they were marked, at most 100. */
  async favorites(user: UserRef): Promise<readonly MarkedPortalItem[]> {
    return (await this.#store.marks(user, 'favorite')).flatMap(toItem)
  }

  /** False if the user has 100 already. Marking again changes nothing. */
  addFavorite(user: UserRef, item: PortalItem): Promise<boolean> {
    return this.#store.mark(user, 'favorite', item, maxFavorites)
  }

  removeFavorite(user: UserRef, item: PortalItem): Promise<void> {
    return this.#store.unmark(user, 'favorite', item)
  }

  /** Latest first, at most 20. */
  async recent(user: UserRef): Promise<readonly MarkedPortalItem[]> {
    return (await this.#store.marks(user, 'recent')).flatMap(toItem).reverse()
  }

  noteUse(user: UserRef, item: PortalItem): Promise<void> {
    return this.#store.note(user, 'recent', item, maxRecent)
  }

  /** The ids of notifications that the user has read. */
  async readNotifications(user: UserRef): Promise<ReadonlySet<string>> {
    return new Set((await this.#store.marks(user, 'read')).map(({ name }) => name))
  }

  /** Adds to them. Forgets all that are not `current`, if that is given; at most 500 are kept. */
  async markRead(user: UserRef, ids: readonly string[], current?: readonly string[]): Promise<void> {
    const marks = (names: readonly string[]) => names.map((name) => ({ kind: 'notification', name }))
    await this.#store.noteAll(user, 'read', marks(ids), { limit: maxRead, ...(current && { keep: marks(current) }) })
  }

  /** When the user is mailed about what; undefined if the user chose nothing. */
  async notificationSettings({ identity }: UserRef): Promise<NotificationSettings | undefined> {
    return (await this.#notifications.settingsOf([identity])).get(identity)
  }

  /** Kinds that are absent stay as they are. */
  chooseNotifications({ identity }: UserRef, chosen: NotificationChoices): Promise<NotificationSettings> {
    return this.#notifications.save(identity, chosen)
  }

  /** One opaque reference for each, in order: valid for this user only, and for an hour. */
  async offer(user: UserRef, offers: readonly OfferedParameters[]): Promise<readonly string[]> {
    const references = offers.map(() => newSecret())
    const stored = offers.map((offer, i) => ({ ...offer, reference: secretHash(references[i] ?? '') }))
    if (stored.length > 0) await this.#store.offer(user, stored, offerMillis, maxOffers)
    return references
  }

  /** What was offered; undefined for a reference that is unknown, another user's or expired. */
  async offered(user: UserRef, reference: string): Promise<OfferedParameters | undefined> {
    const found = await this.#store.offered(user, secretHash(reference))
    return found && { workflow: found.workflow, parameters: found.parameters }
  }
}

const kinds: readonly PortalItem['kind'][] = ['url', 'workflow']

function toItem({ kind, name, at }: PortalMark): MarkedPortalItem[] {
  const known = kinds.find((word) => word === kind)
  return known === undefined ? [] : [{ kind: known, name, at }]
}
