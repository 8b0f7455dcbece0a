import type { PortalOrg, PortalUrl, PortalWorkflow } from '#features/portal/access/portal.ts'
import type { WorkflowListItem } from '#features/portal/contract/main.ts'
import type { PortalHost } from '#features/portal/host.ts'
import type { LookUpNames } from '#features/portal/runs/person-names.ts'
import type { UserRef } from '#identity/identity.ts'
import { callerRef, type Subject } from '#identity/subject.ts'
import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import type { KeyedQueue } from '#kernel/keyed-queue.ts'
import { spanMillis } from '#kernel/time.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { FormAttribute } from '#sdk/forms/form-attribute.ts'
import { anothersLoginText, hasOwnLogin } from '#sdk/login/own-login.ts'
import type { Translate } from '#sdk/page/configured-texts.ts'
import type { Rule } from '#sdk/rule/rule.ts'
import { clustersOf } from '#sdk/target/kubernetes-cluster.ts'
import { clusterGroups } from '#sdk/target-module/cluster-group-parameters.ts'
import type { RunHead } from '#sdk/workflow/run-head.ts'
import { runLabels } from '#sdk/workflow/workflow-label.ts'
import type { MainSettings } from './main-settings.ts'
import type { People } from './people.ts'

/** Shared by the parts of the API. */
export interface MainParts {
  readonly settings: MainSettings
  readonly host: PortalHost
  readonly visibility: Visibility
  readonly people: People
  readonly names: LookUpNames
  /** Requests that users submit, by identity. */
  readonly carts: KeyedQueue
  /** Texts of the configuration, in the caller's language. */
  readonly translate: Translate
}

/** The caller's login in the portal; the authenticated name if the caller has no such attribute. */
export const loginOf = (parts: Pick<MainParts, 'settings'>, subject: Subject): string => userOf(parts, subject).login

/** Whether no other user of the directory has the login that the portal knows the caller by. */
export const ownsLogin = (parts: MainParts, subject: Subject): Promise<boolean> =>
  hasOwnLogin(userOf(parts, subject), parts.host.directory, parts.settings.given.uidAttributeName)

/**
 * The login that the portal knows the caller by. Throws ACCESS_DENIED where it belongs to another user, with an audit
 * entry where the caller would have started a workflow.
 */
export async function requireOwnLogin(
  parts: MainParts,
  { subject, request }: Pick<Exchange, 'subject' | 'request'>,
  workflow?: string,
): Promise<string> {
  const login = loginOf(parts, subject)
  if (await ownsLogin(parts, subject)) return login
  if (workflow !== undefined) await auditRefusal(parts, { subject, request }, workflow)
  throw new GatewayError('ACCESS_DENIED', `the login "${login}" of ${subject.identity} belongs to another user`, {
    publicText: anothersLoginText,
  })
}

/** Writes into the audit that the caller would have started the workflow for the user who has the caller's login. */
export function auditRefusal(
  parts: MainParts,
  { subject, request }: Pick<Exchange, 'subject' | 'request'>,
  name: string,
): Promise<void> {
  const login = loginOf(parts, subject)
  const refused = [{ kind: 'entry', attribute: 'subject', value: login }] as const
  return parts.host.runs.refuse({ name, caller: subject.uid, subject: login, requestId: request.id, refused })
}

/** The labels of these runs, with the parameters of their requests. */
export const labelsOf = (runs: readonly RunHead[], { host }: MainParts) =>
  runLabels(runs, {
    workflowOf: (name) => host.portal.workflows.find((workflow) => workflow.name === name),
    parametersOf: (ids) => host.runs.parametersOf(ids),
  })

/** Groups as the portal shows them: their names, or one JSON text with the rows of a table. */
export function shownGroups({ settings, host }: MainParts, groups: readonly string[]): readonly string[] {
  const { clusterGroups: names } = settings
  if (names === undefined || groups.length === 0) return groups
  return [JSON.stringify(clusterGroups(groups, names, clustersOf(host.targets)))]
}

/** Whether the subject sees the console. */
export const isAdministrator = ({ visibility, settings }: MainParts, subject: Subject): Promise<boolean> =>
  visibility.allows(subject, settings.administrators)

/** Whether the subject may also change something there. */
export const isOperator = async (parts: MainParts, subject: Subject): Promise<boolean> =>
  (await isAdministrator(parts, subject)) && (await parts.visibility.allows(subject, parts.settings.operators))

/** Throws ACCESS_DENIED unless the administrator may change something. */
export async function requireOperator(parts: MainParts, { subject }: Pick<Exchange, 'subject'>): Promise<void> {
  if (await isOperator(parts, subject)) return
  throw new GatewayError('ACCESS_DENIED', `"${subject.uid}" is an administrator but not an operator of the portal`, {
    publicText: 'You can view this, but not change it.',
  })
}

type KnownUser = Pick<Subject, 'attributes'>

/** The fields that the subject sees. */
export function shownAttributes({ attributes, helper }: MainSettings, subject: KnownUser): readonly FormAttribute[] {
  if (helper === undefined) return attributes
  const allowed = helper.attributesOf(subject)
  return attributes.filter(({ name }) => allowed.has(name))
}

/** Both the configuration and the helper, if there is one, must allow it. */
export const mayEdit = ({ given, helper }: MainSettings, subject: KnownUser): boolean =>
  given.canEditUser && (helper?.mayEdit(subject) ?? true)

interface Rights {
  readonly delegate: boolean
  readonly preApprove: boolean
}

/** Users who may pre-approve may request for others, since there is nothing to pre-approve otherwise. */
export function rightsOf({ given, helper }: MainSettings, subject: Subject): Rights {
  const may = (setting: 'YES' | 'NO' | 'CUSTOM', ask: ((subject: Subject) => boolean) | undefined): boolean =>
    setting === 'CUSTOM' ? (ask?.(subject) ?? false) : setting === 'YES'
  const preApprove = may(given.canPreApprove, helper?.mayPreApprove)
  return { preApprove, delegate: preApprove || may(given.canDelegate, helper?.mayDelegate) }
}

/** The caller as the portal stores and compares users. */
export const userOf = (parts: Pick<MainParts, 'settings'>, subject: Subject): UserRef =>
  callerRef(subject, parts.settings.given.uidAttributeName)

/** How long a decision is remembered for the same subject object. */
const rememberedMillis = 3_000
const atOnce = 8

type Decisions = Map<string, { readonly allowed: Promise<boolean>; readonly until: number }>

/** Decides who sees which orgs, links and workflows. Equal rules are evaluated once. */
export class Visibility {
  readonly #host: Pick<PortalHost, 'authorize' | 'portal' | 'clock'>
  readonly #decisions = new WeakMap<Subject, Decisions>()
  readonly #keys = new WeakMap<readonly Rule[], string>()

  constructor(host: Pick<PortalHost, 'authorize' | 'portal' | 'clock'>) {
    this.#host = host
  }

  /** One rule that passes is enough; no rules deny. */
  async allows(subject: Subject, rules: readonly Rule[]): Promise<boolean> {
    if (rules.length === 0) return false
    const now = this.#host.clock().getTime()
    const decisions: Decisions = this.#decisions.get(subject) ?? new Map()
    this.#decisions.set(subject, decisions)
    const key = this.#keyOf(rules)
    const earlier = decisions.get(key)
    if (earlier !== undefined && earlier.until > now) return await earlier.allowed
    const allowed = this.#host.authorize(subject, rules).then((decision) => decision.allowed)
    decisions.set(key, { allowed, until: now + rememberedMillis })
    allowed.catch(() => decisions.delete(key))
    return await allowed
  }

  /** Orgs that the subject sees, if the subject sees their parents too; parents come before their children. */
  async orgs(subject: Subject): Promise<readonly PortalOrg[]> {
    const { orgs } = this.#host.portal
    const passed = await inParallel(orgs, atOnce, ({ rules }) => this.allows(subject, rules))
    const seen = new Set<string>()
    return orgs.filter(({ id, parent }, i) => {
      const sees = passed[i] === true && (parent === undefined || seen.has(parent))
      if (sees) seen.add(id)
      return sees
    })
  }

  async orgIds(subject: Subject): Promise<ReadonlySet<string>> {
    return new Set((await this.orgs(subject)).map(({ id }) => id))
  }

  async urls(subject: Subject): Promise<readonly PortalUrl[]> {
    const { urls } = this.#host.portal
    const passed = await inParallel(urls, atOnce, ({ rules }) => this.allows(subject, rules))
    return urls.filter((_, i) => passed[i] === true)
  }

  /** Listed workflows of an org that the subject sees, or of every org. */
  async workflows(subject: Subject): Promise<readonly PortalWorkflow[]> {
    const orgs = await this.orgIds(subject)
    return this.#host.portal.workflows.filter(({ inList, org }) => inList && (org === undefined || orgs.has(org)))
  }

  #keyOf(rules: readonly Rule[]): string {
    let key = this.#keys.get(rules)
    if (key === undefined) {
      key = JSON.stringify(rules.map(({ scope, constraint }) => [scope, constraint]))
      this.#keys.set(rules, key)
    }
    return key
  }
}

/** How the requester can choose an expiry date, as the portal shows it. */
export function endOffer({ accessEnds }: PortalWorkflow, now: Date): Pick<WorkflowListItem, 'accessEnds'> {
  if (accessEnds === undefined) return {}
  const { required, longest } = accessEnds
  const millis = longest && spanMillis(now, longest)
  return { accessEnds: { required, ...(millis === undefined ? {} : { longestSeconds: Math.floor(millis / 1000) }) } }
}
