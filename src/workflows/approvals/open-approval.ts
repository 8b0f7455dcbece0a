import { isDeactivated, isSecretAttribute } from '#identity/attributes.ts'
import { type Identity, isLoginOnly, loginIdentity, type UserRef } from '#identity/identity.ts'
import type { User } from '#identity/user.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import { isForbiddenKey, type JsonObject } from '#kernel/json.ts'
import { spanMillis, sumOfSpans } from '#kernel/time.ts'
import type { Rule } from '#sdk/rule/rule.ts'
import type { NewAccount } from '#sdk/target/new-account.ts'
import type { ApprovalRequest } from '#sdk/workflow/approval-request.ts'
import type { RunHead } from '#sdk/workflow/run-head.ts'
import { isEngineKey } from '#sdk/workflow/workflow.ts'
import type { WorkflowUser } from '#sdk/workflow/workflow-task.ts'
import { sameLogin } from '#sdk/workflow/workflow-user.ts'
import type { AppointedApprover, NewApproval } from '#workflows/record/approval.ts'
import type { NewTimer } from '#workflows/timers/timer.ts'
import { type ApproverMailParts, approverMails } from './approver-mail.ts'
import type { ApprovalAuthority, Approver, ApproverFinder } from './approvers.ts'
import { type ApprovalPlan, readPlan, storePlan } from './approvers.ts'
import { barOf, type DecisionParties, involvedIn, type Parties, partiesOf } from './decision-influence.ts'

/** The run that will wait for an approval. */
export interface ApprovalRun {
  readonly head: RunHead
  /** The number of the step that requests it. */
  readonly step: number
  /** The user as the task sees it, and the request map. Approvers see them without secrets. */
  readonly user: RequestedUser
  readonly request: ReadonlyMap<string, unknown>
  /** The run may only create accounts: approvers see the submitted values. */
  readonly newAccount?: NewAccount | undefined
  readonly appointed?: AppointedApprover | undefined
}

/** The kind of the timers that `escalate` handles. */
export const escalationTimer = 'approval-escalation'

export interface OpeningParts extends ApproverMailParts {
  readonly clock: Clock
  readonly authority: ApprovalAuthority
}

/** The approval, committed with the step that waits for it. */
export async function openApproval(
  request: ApprovalRequest,
  run: ApprovalRun,
  parts: OpeningParts,
): Promise<NewApproval> {
  const { label, allowSelf, commentRequired, mail } = request
  const about = { login: run.head.subject, identity: run.head.who.subject ?? loginIdentity(run.head.subject) }
  const rulesAbout = (given: readonly Rule[]): readonly Rule[] => given.map((rule) => ruleAbout(rule, about))
  const failure = request.failure && rulesAbout(request.failure)
  const escalations = request.escalations.map(({ approvers: next, onlyIf }) => ({
    approvers: rulesAbout(next),
    ...(onlyIf === undefined ? {} : { onlyIf: ruleAbout(onlyIf, about) }),
  }))
  const involved = await allInvolvedIn(run, parts.finder)
  const chosenBy = run.appointed && { reassignedBy: partiesOf([run.appointed.by]) }
  const parties: DecisionParties = { involved, allowSelf, ...chosenBy }
  const appointed = run.appointed && (await appointedApprover(run.appointed.approver, parties, parts.finder))
  // The escalations are asked at once rather than no one.
  const choices = [{ approvers: rulesAbout(request.approvers) }, { approvers: failure ?? [] }, ...escalations]
  const found = appointed === undefined ? await firstChoice(choices, about, parties, parts) : undefined
  const approvers = appointed === undefined ? found?.approvers : [appointed]
  if (approvers === undefined) throw noApprovers(label, request.approvers)
  const plan: ApprovalPlan = {
    approvers: found?.rules ?? rulesAbout(request.approvers),
    ...(appointed && { assigned: [appointed.identity] }),
    ...chosenBy,
    involved,
    escalations,
    ...(failure === undefined ? {} : { failure }),
    ...(mail === undefined ? {} : { mail }),
  }
  const id = newId()
  const mailAbout = {
    subject: 'mail.approval',
    label,
    run: run.head,
    parties,
    step: run.step,
    occasion: id,
    approval: { id, version: 1 },
  } as const
  return {
    id,
    step: run.step,
    label,
    approvers: approvers.map(({ login, identity }) => ({ login, identity })),
    allowSelf,
    ...(commentRequired === true ? { commentRequired } : {}),
    rules: readable(plan),
    data: approvalData(run.user, run.request),
    ...(run.newAccount === undefined ? {} : { newAccount: true }),
    timers: escalationTimers(request, parts.clock()),
    mails: mail === undefined ? [] : await approverMails(approvers, mail, mailAbout, parts),
  }
}

/** A custom authorization may decide by the user whom the request is about. */
const ruleAbout = (rule: Rule, about: UserRef): Rule => (rule.scope === 'custom' ? { ...rule, about } : rule)

/** The users that the rules name, without users who may not decide. */
export async function findApprovers(
  rules: readonly Rule[],
  parties: DecisionParties,
  finder: ApproverFinder,
): Promise<readonly Approver[]> {
  return (await finder.find(rules)).filter((user) => barOf(parties, user, [user.entry]) === undefined)
}

interface ApproverChoice {
  readonly approvers: readonly Rule[]
  readonly onlyIf?: Rule
}

/** The first rules that find someone. */
async function firstChoice(
  choices: readonly ApproverChoice[],
  about: UserRef,
  parties: DecisionParties,
  { finder, authority }: OpeningParts,
): Promise<{ readonly rules: readonly Rule[]; readonly approvers: readonly Approver[] } | undefined> {
  for (const { approvers: rules, onlyIf } of choices) {
    if (onlyIf !== undefined && !(await authority.passes([onlyIf], await finder.entriesOf(about)))) continue
    const approvers = await findApprovers(rules, parties, finder)
    if (approvers.length > 0) return { rules, approvers }
  }
  return undefined
}

/** Undefined if the user may not decide, or is no longer active. */
async function appointedApprover(
  user: UserRef,
  parties: DecisionParties,
  finder: ApproverFinder,
): Promise<Approver | undefined> {
  const [entry] = await finder.entriesOf(user)
  if (entry === undefined || isDeactivated(entry.attributes)) return undefined
  return barOf(parties, user, [entry], { forOthers: true }) === undefined ? { ...user, entry } : undefined
}

/** With the entries of the user as the tasks see it. */
async function allInvolvedIn(run: ApprovalRun, finder: ApproverFinder): Promise<Parties> {
  const { who, subject } = run.head
  const { user } = run
  const involved = involvedIn(run.head)
  const identities = new Set<Identity>(involved.identities)
  const names = new Set<string>(involved.names)
  // The subject may be a login that a task chose, or an account that only a target has.
  const known = who.subject === undefined || isLoginOnly(who.subject) ? [] : [subject]
  for (const name of new Set([subject, user.userID, ...user.attributes.values('uid')])) {
    if (known.some((login) => sameLogin(login, name))) continue
    for (const { identity } of await finder.named(name)) identities.add(identity)
    names.add(name)
  }
  return { identities: [...identities], names: [...names] }
}

/**
 * One timer for each escalation, and one after the last if there are fallback approvers. The store's clock decides
 * when each is due; this process's clock only gives the length of months.
 */
function escalationTimers({ escalations, failure }: ApprovalRequest, now: Date): NewTimer[] {
  const spans = escalations.map(({ after }) => after)
  const last = spans.at(-1)
  if (failure !== undefined && last !== undefined) spans.push(last)
  return spans.map((_, i) => {
    const inMillis = spanMillis(now, sumOfSpans(spans.slice(0, i + 1)))
    if (inMillis === undefined) throw new GatewayError('WORKFLOW_FAILED', 'an escalation would be due in 100 years')
    return { id: newId(), kind: escalationTimer, due: { inMillis }, data: { escalation: i + 1 } }
  })
}

/** Checks that it can be read again: failing now is better than failing at the decision. */
function readable(plan: ApprovalPlan): ReturnType<typeof storePlan> {
  const stored = storePlan(plan)
  readPlan(stored)
  return stored
}

function noApprovers(label: string, rules: readonly Rule[]): GatewayError {
  const asked = rules.map(({ scope, constraint }) => `${scope} "${constraint}"`).join(', ')
  return new GatewayError(
    'NO_APPROVERS',
    `no user may decide "${label}": ${asked === '' ? 'no rule has values for its placeholders' : asked}`,
  )
}

const maxNames = 100
const maxValues = 20
const maxLength = 2000
/** The maximum number of characters in total. */
const maxTotal = 64 * 1024

/** While memberships are unknown, the groups that the user will join are among the changes. */
type RequestedUser = User & Partial<Pick<WorkflowUser, 'keepGroups' | 'groupChanges'>>

/**
 * What approvers see: the subject's attributes and groups, and the request's parameters. Leaves out secrets and the
 * keys of the engine; cuts long lists and texts.
 */
export function approvalData(user: RequestedUser, request: ReadonlyMap<string, unknown>): JsonObject {
  let left = maxTotal
  const cut = (text: string): string => {
    const shown = text.length > maxLength ? `${text.slice(0, maxLength)}…` : text
    left -= shown.length
    return left < 0 ? '…' : shown
  }
  const parameters: Record<string, string> = Object.create(null)
  for (const [name, value] of shownOf(request)) {
    if (typeof value === 'string' && !isEngineKey(name)) parameters[name] = cut(value)
  }
  const attributes: Record<string, readonly string[]> = Object.create(null)
  for (const [name, values] of shownOf(user.attributes)) attributes[name] = values.slice(0, maxValues).map(cut)
  const groups = user.keepGroups === true ? (user.groupChanges?.add ?? []) : user.groups
  return { attributes, groups: groups.slice(0, maxNames).map(cut), parameters }
}

function shownOf<V>(source: Iterable<readonly [string, V]>): (readonly [string, V])[] {
  return [...source].filter(([name]) => !isSecretAttribute(name) && !isForbiddenKey(name)).slice(0, maxNames)
}
