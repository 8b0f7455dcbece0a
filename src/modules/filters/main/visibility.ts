import type { Subject } from '#identity/subject.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import type { Rule } from '#sdk/auth/rule.ts'
import type { FilterHost } from '#sdk/filter/filter-host.ts'
import type { PortalOrg, PortalUrl, PortalWorkflow } from '#sdk/filter/portal.ts'

/** How long a decision is remembered for the very subject that it was made for. */
const rememberedMillis = 3_000
const atOnce = 8

type Decisions = Map<string, { readonly allowed: Promise<boolean>; readonly until: number }>

/** Who sees which orgs, links and workflows. Rules that are the same are asked once. */
export class Visibility {
  readonly #host: Pick<FilterHost, 'authorize' | 'portal' | 'clock'>
  readonly #decisions = new WeakMap<Subject, Decisions>()
  readonly #keys = new WeakMap<readonly Rule[], string>()

  constructor(host: Pick<FilterHost, 'authorize' | 'portal' | 'clock'>) {
    this.#host = host
  }

  /** Any rule passes; none denies. */
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

  /** Those that the subject sees, each below one that the subject sees too; those above stand before those below. */
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

  /** Listed, and of an org that the subject sees or of every org. */
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
