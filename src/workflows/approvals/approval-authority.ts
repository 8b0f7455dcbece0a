import { isDeactivated } from '#identity/attributes.ts'
import type { DirectoryEntry } from '#identity/directory.ts'
import { isUser, type UserRef } from '#identity/identity.ts'
import type { RuleEvaluator } from '#requests/routing/rule-evaluator.ts'
import type { Rule } from '#sdk/rule/rule.ts'
import type { Approval } from '#workflows/record/approval.ts'
import type { ApprovalUser } from '#workflows/record/operator.ts'
import type { DelegationStore } from '#workflows/store/delegation-store.ts'
import type { ApprovalPlan } from './approval-plan.ts'
import type { ApproverFinder } from './approver-finder.ts'
import { type Bar, barOf } from './decision-influence.ts'

/** A user's role in an approval. `barred`: the rules or a deputy period allow the user, but something else forbids it. */
export type DecisionRight =
  | { readonly kind: 'may'; readonly onBehalfOf?: string }
  | { readonly kind: 'barred'; readonly bar: Bar }
  | { readonly kind: 'none' }

interface AuthorityParts {
  readonly finder: ApproverFinder
  readonly rules: Pick<RuleEvaluator, 'decide'>
  readonly delegations: Pick<DelegationStore, 'representedBy'>
}

/** Who may decide, by the current directory, rules and delegations. */
export class ApprovalAuthority {
  readonly #parts: AuthorityParts

  constructor(parts: AuthorityParts) {
    this.#parts = parts
  }

  async rightOf(
    { allowSelf, approvers }: Pick<Approval, 'allowSelf' | 'approvers'>,
    plan: ApprovalPlan,
    user: ApprovalUser,
  ): Promise<DecisionRight> {
    const entries = await this.#parts.finder.entriesOf(user)
    const active = entries.filter(isActive)
    // A deactivated user may not decide, not even with a link that needs no login.
    if (entries.length > 0 && active.length === 0) return { kind: 'none' }
    const parties = { ...plan, allowSelf }
    if (await this.#mayDecide(plan, active)) {
      const bar = barOf(parties, user, entries)
      return bar === undefined ? { kind: 'may' } : { kind: 'barred', bar }
    }
    const onBehalfOf = await this.#represented(approvers, allowSelf, plan, refsOf(user, entries))
    if (onBehalfOf === undefined) return { kind: 'none' }
    // The requester never decides as a deputy, even if the approval allows their own decision.
    const bar = barOf(parties, user, entries, { forOthers: true })
    return bar === undefined ? { kind: 'may', onBehalfOf: onBehalfOf.login } : { kind: 'barred', bar }
  }

  async #mayDecide({ assigned, approvers }: ApprovalPlan, entries: readonly DirectoryEntry[]): Promise<boolean> {
    if (assigned === undefined) return await this.passes(approvers, entries)
    return entries.some(({ identity }) => assigned.includes(identity))
  }

  /** Whether one of the entries passes one of the rules now. */
  async passes(rules: readonly Rule[], entries: readonly DirectoryEntry[]): Promise<boolean> {
    for (const { dn, identity, attributes } of entries) {
      const uid = attributes.first('uid') ?? ''
      const { allowed } = await this.#parts.rules.decide({ dn, identity, uid, attributes, level: 0, chain: '' }, rules)
      if (allowed) return true
    }
    return false
  }

  /** An assigned approver who may still decide and whose deputy the user is now. */
  async #represented(
    approvers: readonly UserRef[],
    allowSelf: boolean,
    plan: ApprovalPlan,
    deputy: readonly UserRef[],
  ): Promise<UserRef | undefined> {
    for (const ref of deputy) {
      for (const represented of await this.#parts.delegations.representedBy(ref)) {
        if (!approvers.some((approver) => isSame(approver, represented))) continue
        const entries = await this.#parts.finder.entriesOf(represented)
        if (barOf({ ...plan, allowSelf }, represented, entries) !== undefined) continue
        if (await this.#mayDecide(plan, entries.filter(isActive))) return represented
      }
    }
    return undefined
  }
}

const isActive = ({ attributes }: DirectoryEntry): boolean => !isDeactivated(attributes)

/**
 * The user under each login of their entry, because rows from before identities may be stored under any. Does not
 * search the directory.
 */
export function refsOf(user: ApprovalUser, entries: readonly DirectoryEntry[] = []): readonly UserRef[] {
  const { identity, dn } = user
  const named = (dn === undefined || dn.isClaimed ? [] : (dn.rdns[0] ?? [])).map(({ value }) => value)
  const known = entries.flatMap((entry) =>
    entry.attributes.values('uid').map((uid) => ({ identity: entry.identity, login: uid })),
  )
  return [user, ...named.map((login) => ({ identity, login })), ...known]
}

/** By identity; by login only if one of the two is stored without an identity, and the other is a directory entry. */
const isSame = (one: UserRef, other: UserRef): boolean => isUser(one.identity, other) || isUser(other.identity, one)
