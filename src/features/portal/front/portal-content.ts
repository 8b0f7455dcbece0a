import type { Configuration } from '#config/configuration/configuration.ts'
import type {
  MarkedPortalItem,
  PortalAccess,
  PortalItem,
  PortalMemory,
  PortalOrg,
  PortalWorkflow,
} from '#features/portal/access/portal-access.ts'
import { newSecret, secretHash } from '#kernel/ids.ts'
import { sendsDigests } from '#mail/mail-choices.ts'
import type { NotificationStore } from '#mail/notification-store.ts'
import type { DynamicWorkflowSource } from '#sdk/workflow/dynamic-workflow.ts'
import { approverGroups, needsComment } from '#workflows/definitions/workflow-parameters.ts'
import type { PortalMark, PortalStore } from './portal-store.ts'

type Shown = Pick<Configuration, 'orgs' | 'portalUrls' | 'reports' | 'workflows' | 'notifiers' | 'jobs'>

/** The portal's part of the configuration. The sources of dynamic workflows, by workflow, may be added later. */
export function createPortal(
  { orgs, portalUrls, reports, workflows, notifiers, jobs }: Shown,
  sources: ReadonlyMap<string, DynamicWorkflowSource>,
  memory: PortalMemory,
): PortalAccess {
  return {
    memory,
    mail: {
      isConfigured: [...notifiers.values()].some(({ notifier }) => notifier.delivers === 'mails'),
      hasDigest: sendsDigests({ jobs }),
    },
    orgs: fromTheTop(
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
    ),
    urls: Array.from(portalUrls.values(), ({ name, spec, rules }) => ({
      name,
      label: spec.label,
      url: spec.url,
      org: spec.org === '' ? undefined : spec.org,
      icon: spec.icon || undefined,
      rules,
    })),
    reports: Array.from(reports.values(), ({ spec }) => ({
      name: spec.name,
      org: spec.orgId === '' ? undefined : spec.orgId,
      spec,
    })),
    workflows: Array.from(workflows.values(), (workflow): PortalWorkflow => {
      const { name, label, description, orgId, inList, owner, accessEnds, dynamic } = workflow
      return {
        name,
        label,
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
    }),
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

export function createPortalMemory(store: PortalStore, notifications: NotificationStore): PortalMemory {
  return {
    favorites: async (user) => (await store.marks(user, 'favorite')).flatMap(toItem),
    addFavorite: (user, item) => store.mark(user, 'favorite', item, maxFavorites),
    removeFavorite: (user, item) => store.unmark(user, 'favorite', item),
    recent: async (user) => (await store.marks(user, 'recent')).flatMap(toItem).reverse(),
    noteUse: (user, item) => store.note(user, 'recent', item, maxRecent),

    readNotifications: async (user) => new Set((await store.marks(user, 'read')).map(({ name }) => name)),
    async markRead(user, ids, current) {
      const marks = (names: readonly string[]) => names.map((name) => ({ kind: 'notification', name }))
      await store.noteAll(user, 'read', marks(ids), { limit: maxRead, ...(current && { keep: marks(current) }) })
    },

    notificationSettings: async ({ identity }) => (await notifications.settingsOf([identity])).get(identity),
    chooseNotifications: ({ identity }, chosen) => notifications.save(identity, chosen),

    async offer(user, offers) {
      const references = offers.map(() => newSecret())
      const stored = offers.map((offer, i) => ({ ...offer, reference: secretHash(references[i] ?? '') }))
      if (stored.length > 0) await store.offer(user, stored, offerMillis, maxOffers)
      return references
    },
    async offered(user, reference) {
      const found = await store.offered(user, secretHash(reference))
      return found && { workflow: found.workflow, parameters: found.parameters }
    },
  }
}

const kinds: readonly PortalItem['kind'][] = ['url', 'workflow']

function toItem({ kind, name, at }: PortalMark): MarkedPortalItem[] {
  const known = kinds.find((word) => word === kind)
  return known === undefined ? [] : [{ kind: known, name, at }]
}
