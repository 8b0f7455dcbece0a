import type { ApprovalPlan } from '#engine/approvals/approval-plan.ts'
import type { ApproverFinder } from '#engine/approvals/approver-finder.ts'
import type { RuleEvaluator } from '#engine/pipeline/rule-evaluator.ts'
import type { DirectoryEntry } from '#identity/directory.ts'
import { isSwitchedOff } from '#identity/switched-off.ts'
import type { ApprovalUser } from '#sdk/approvals.ts'
import type { Rule } from '#sdk/rule.ts'
import { sameLogin } from '#sdk/workflow-user.ts'
import type { Approval } from '#storage/approval-store.ts'
import type { DelegationStore } from '#storage/delegation-store.ts'

/**
 * What somebody is to an approval. `barred`: the rules would let them decide, but they asked for it, or it is about them.
 */
export type Standing =
  | { readonly kind: 'may'; readonly onBehalfOf?: string }
  | { readonly kind: 'barred' }
  | { readonly kind: 'none' }

export interface AuthorityParts {
  readonly finder: ApproverFinder
  readonly rules: Pick<RuleEvaluator, 'decide'>
  readonly delegations: Pick<DelegationStore, 'representedBy'>
}

/** Who may decide, by the directory, the rules and the delegations as they are at this moment. */
export class ApprovalAuthority {
  readonly #parts: AuthorityParts

  constructor(parts: AuthorityParts) {
    this.#parts = parts
  }

  async standing(
    { allowSelf, approvers }: Pick<Approval, 'allowSelf' | 'approvers'>,
    plan: ApprovalPlan,
    user: ApprovalUser,
  ): Promise<Standing> {
    const entries = await this.#parts.finder.entriesOf(user)
    const active = entries.filter(isActive)
    // Whoever left decides in nobody's name, also by a link that needs no login.
    if (entries.length > 0 && active.length === 0) return { kind: 'none' }
    const logins = loginsOf(user, entries)
    const involved = isMeant(plan.involved, logins, entries)
    if (await this.passes(plan.approvers, active)) {
      return involved && !allowSelf ? { kind: 'barred' } : { kind: 'may' }
    }
    const onBehalfOf = await this.#represented(approvers, allowSelf ? [] : plan.involved, plan, logins)
    if (onBehalfOf === undefined) return { kind: 'none' }
    // Whoever asked decides in nobody's place, whatever the approval says about their own.
    return involved ? { kind: 'barred' } : { kind: 'may', onBehalfOf }
  }

  /** One of the entries passes one of the rules now. */
  async passes(rules: readonly Rule[], entries: readonly DirectoryEntry[]): Promise<boolean> {
    for (const { dn, identity, attributes } of entries) {
      const uid = attributes.first('uid') ?? ''
      const { allowed } = await this.#parts.rules.decide({ dn, identity, uid, attributes, level: 0, chain: '' }, rules)
      if (allowed) return true
    }
    return false
  }

  /** Of those the approval was given to, one who may still decide, and whose deputy one of the logins is now. */
  async #represented(
    approvers: readonly string[],
    barred: readonly string[],
    plan: ApprovalPlan,
    logins: readonly string[],
  ): Promise<string | undefined> {
    for (const login of logins) {
      for (const represented of await this.#parts.delegations.representedBy(login)) {
        if (!hasAny(approvers, [represented])) continue
        const entries = await this.#parts.finder.entriesOf({ login: represented })
        if (isMeant(barred, [represented], entries)) continue
        if (await this.passes(plan.approvers, entries.filter(isActive))) return represented
      }
    }
    return undefined
  }
}

const isActive = ({ attributes }: DirectoryEntry): boolean => !isSwitchedOff(attributes)

/** By which logins the caller is known: the one that was authenticated, and that of the directory entry. */
export function loginsOf({ login }: ApprovalUser, entries: readonly DirectoryEntry[]): string[] {
  const all = [login, ...entries.flatMap(({ attributes }) => attributes.values('uid'))]
  return all.filter((one, i) => one !== '' && all.findIndex((other) => sameLogin(one, other)) === i)
}

/**
 * True when one of the names may be that person's. A caller may name people by any attribute that tells them apart, and
 * targets may take spellings for the same that are not the same here: better one approver too few than one who asked.
 */
export function isMeant(
  names: readonly string[],
  logins: readonly string[],
  entries: readonly DirectoryEntry[],
): boolean {
  const own = entries.flatMap(({ attributes }) => [...attributes.values('uid'), ...attributes.values('mail')])
  const known = new Set([...logins, ...own].map(looseName))
  return names.some((name) => known.has(looseName(name)))
}

const looseName = (name: string): string => name.normalize('NFKC').trim().toLowerCase()

export const hasAny = (logins: readonly string[], wanted: readonly string[]): boolean =>
  wanted.some((login) => logins.some((other) => sameLogin(login, other)))
