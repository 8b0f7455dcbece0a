import type { EntryDirectory } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import { evaluate, failedClauses } from '#identity/filter/evaluate.ts'
import { parseFilter } from '#identity/filter/filter-text.ts'
import { isNamedBy, parseMemberUrl } from '#identity/member-url.ts'
import type { Subject } from '#identity/subject.ts'
import { type ErrorCode, GatewayError } from '#kernel/errors.ts'
import type { Logger } from '#kernel/logger.ts'
import type { Authorization } from '#sdk/auth/authorization.ts'
import type { Rule, RuleDecision, RuleVerdict } from '#sdk/rule/rule.ts'

type Verdict = Pick<RuleVerdict, 'passed' | 'reason'>

const unanswering: ReadonlySet<ErrorCode> = new Set(['TARGET_UNREACHABLE', 'TARGET_TIMEOUT'])

const memberAttributes = ['member', 'uniqueMember']
const presentOnly = parseFilter('(objectClass=*)')

/** Evaluates rules for a subject. A rule that can't be evaluated does not pass, and the log says why. */
export class RuleEvaluator {
  readonly #directory: EntryDirectory
  readonly #authorizations: ReadonlyMap<string, Authorization>
  readonly #log: Logger

  constructor(directory: EntryDirectory, authorizations: ReadonlyMap<string, Authorization>, log: Logger) {
    this.#directory = directory
    this.#authorizations = authorizations
    this.#log = log
  }

  /**
   * Stops at the first rule that passes. If none does, and a system did not answer for one of them, it throws that
   * error (503), because the result is unknown.
   */
  async decide(subject: Subject, rules: readonly Rule[]): Promise<RuleDecision> {
    const verdicts: RuleVerdict[] = []
    let unanswered: GatewayError | undefined
    for (const rule of rules) {
      const { error, ...verdict } = await this.#evaluate(subject, rule)
      verdicts.push(verdict)
      if (verdict.passed) return { allowed: true, verdicts }
      if (error instanceof GatewayError && unanswering.has(error.code)) unanswered ??= error
    }
    if (unanswered !== undefined) throw unanswered
    return { allowed: false, verdicts }
  }

  /** Every rule's result, for people: that of a filter names the clauses that failed. */
  explain(subject: Subject, rules: readonly Rule[]): Promise<RuleVerdict[]> {
    return Promise.all(
      rules.map(async (rule) => {
        const { error: _, ...verdict } = await this.#evaluate(subject, rule)
        if (verdict.passed || rule.scope !== 'filter') return verdict
        return { ...verdict, reason: failedClauses(rule.filter, subject.attributes).join('; ') }
      }),
    )
  }

  async #evaluate(subject: Subject, rule: Rule): Promise<RuleVerdict & { readonly error?: unknown }> {
    try {
      return { rule, ...(await this.#verdict(subject, rule)) }
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      this.#log.error('rule could not be evaluated', { scope: rule.scope, constraint: rule.constraint, err: error })
      return { rule, passed: false, reason: `cannot be evaluated: ${reason}`, error }
    }
  }

  async #verdict(subject: Subject, rule: Rule): Promise<Verdict> {
    switch (rule.scope) {
      case 'dn': {
        const name = namesOf(subject).find((dn) => dn.isWithin(rule.dn))
        return name === undefined
          ? { passed: false, reason: `${namesOf(subject).join(' and ')} is not at or below it` }
          : { passed: true, reason: `${name} is at or below it` }
      }
      case 'filter': {
        const result = evaluate(rule.filter, subject.attributes)
        if (result === undefined) return { passed: false, reason: 'an attribute it names is absent' }
        return {
          passed: result,
          reason: result ? "the subject's attributes match" : "the subject's attributes do not match",
        }
      }
      case 'group':
        return this.#inGroup(subject, rule.group)
      case 'dynamicGroup':
        return this.#inDynamicGroup(subject, rule.group)
      case 'custom': {
        const authorization = this.#authorizations.get(rule.name)
        if (authorization === undefined) throw new Error(`there is no custom authorization "${rule.name}"`)
        const passed = await authorization.isAuthorized(subject, rule.params, rule.about)
        return { passed, reason: `"${rule.name}" said ${passed ? 'yes' : 'no'}` }
      }
    }
  }

  async #inGroup(subject: Subject, group: Dn): Promise<Verdict> {
    for (const name of namesOf(subject)) {
      if ((await this.#directory.isMember(group, name)) && (!name.isClaimed || (await this.#lists(group, name)))) {
        return { passed: true, reason: `${name} is a member` }
      }
    }
    return { passed: false, reason: `${namesOf(subject).join(' and ')} is not a member` }
  }

  /** Directories compare names without letter case, which counts in a name made from a claim. */
  async #lists(group: Dn, name: Dn): Promise<boolean> {
    const search = { base: group, scope: 'base', filter: presentOnly, limit: 1, attributes: memberAttributes } as const
    const [entry] = await this.#directory.search(search)
    return memberAttributes.some((attribute) => entry?.attributes.values(attribute).some((text) => names(text, name)))
  }

  async #inDynamicGroup(subject: Subject, group: Dn): Promise<Verdict> {
    const [entry] = await this.#directory.search({ base: group, scope: 'base', filter: presentOnly, limit: 1 })
    if (entry === undefined) return { passed: false, reason: 'there is no such group' }
    for (const url of entry.attributes.values('memberURL')) {
      const member = parseMemberUrl(url)
      const named = namesOf(subject).some((dn) => isNamedBy(member, dn))
      if (named && evaluate(member.filter, subject.attributes) === true)
        return { passed: true, reason: `${url} covers it` }
    }
    return { passed: false, reason: 'no memberURL of the group covers it' }
  }
}

function names(text: string, dn: Dn): boolean {
  try {
    return Dn.parse(text).equals(dn)
  } catch {
    return false
  }
}

const namesOf = (subject: Subject): readonly Dn[] => [subject.dn, ...(subject.otherNames ?? [])]
