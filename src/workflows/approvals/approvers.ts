import { z } from 'zod'
import { isDeactivated } from '#identity/attributes.ts'
import type { DirectoryEntry, DirectorySearch, MemberDirectory } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { type Identity, isLoginOnly, isUser, storedIdentity, type UserRef } from '#identity/identity.ts'
import { parseMemberUrl } from '#identity/member-url.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import { oneLine } from '#kernel/text/one-line.ts'
import type { RuleEvaluator } from '#requests/routing/rule-evaluator.ts'
import type { Authorization } from '#sdk/auth/authorization.ts'
import { plainRule, type Rule, ruleScopes } from '#sdk/rule/rule.ts'
import { sameLogin } from '#sdk/workflow/workflow-user.ts'
import type { Approval } from '#workflows/record/approval.ts'
import type { ApprovalUser } from '#workflows/record/operator.ts'
import type { DelegationStore } from '#workflows/store/delegation-store.ts'
import { type Bar, barOf, type Parties } from './decision-influence.ts'

const text = z.string()
const texts = z.array(text).readonly()

const rule = z
  .object({
    scope: z.enum(ruleScopes),
    constraint: text,
    name: text.exactOptional(),
    params: texts.exactOptional(),
    about: z.object({ login: text, identity: text.transform(storedIdentity) }).exactOptional(),
  })
  .transform(({ scope, constraint, name = '', params = [], about }): Rule => {
    if (scope !== 'custom') return plainRule(scope, constraint)
    return { scope, constraint, name, params, ...(about && { about }) }
  })

const rules = z.array(rule).readonly()

const parties = z.object({
  identities: z.array(text.transform(storedIdentity)).readonly(),
  names: texts,
})

const approvalPlan = z.object({
  /** Who may decide now. */
  approvers: rules,
  /** Given to these users: they may decide, and no others that the rules name. */
  assigned: z.array(text.transform(storedIdentity)).readonly().exactOptional(),
  /** Operators who chose its approver, and therefore may never decide it. */
  reassignedBy: parties.exactOptional(),
  /** Users with an interest in the decision, who therefore may not make it: who requested it, in whose name, and the subject. */
  involved: parties,
  escalations: z.array(z.object({ approvers: rules, onlyIf: rule.exactOptional() })).readonly(),
  failure: rules.exactOptional(),
  mail: z
    .object({
      text,
      address: text,
      html: text.exactOptional(),
      notifier: text.exactOptional(),
      channel: text.exactOptional(),
      required: z.boolean().exactOptional(),
    })
    .exactOptional(),
})

/** The rules of an open approval, from opening to end. Stored with the approval. */
export type ApprovalPlan = z.output<typeof approvalPlan>

export const storePlan = ({
  approvers,
  assigned,
  reassignedBy,
  involved,
  escalations,
  failure,
  mail,
}: ApprovalPlan): JsonObject => ({
  approvers: approvers.map(storeRule),
  ...(assigned && { assigned: [...assigned] }),
  ...(reassignedBy && { reassignedBy: storeParties(reassignedBy) }),
  involved: storeParties(involved),
  escalations: escalations.map(({ approvers: next, onlyIf }) => ({
    approvers: next.map(storeRule),
    ...(onlyIf && { onlyIf: storeRule(onlyIf) }),
  })),
  ...(failure && { failure: failure.map(storeRule) }),
  ...(mail && { mail: { ...mail } }),
})

const storeParties = ({ identities, names }: Parties): JsonObject => ({
  identities: [...identities],
  names: [...names],
})

function storeRule(rule: Rule): JsonObject {
  const { scope, constraint } = rule
  if (scope !== 'custom') return { scope, constraint }
  const { name, params, about } = rule
  const user = about && { login: about.login, identity: about.identity }
  return { scope, constraint, name, params: [...params], ...(user && { about: user }) }
}

/** Throws an Error for anything that `storePlan` did not store. */
export const readPlan = (stored: JsonValue): ApprovalPlan => approvalPlan.parse(stored)

/** A search with this many results may be incomplete. */
const tooMany = 1000
/** The maximum number of directory branches with the same login. */
const maxNamesakes = 20
const maxName = 200

const people: Filter = { kind: 'present', attribute: 'uid' }
const anything: Filter = { kind: 'present', attribute: 'objectClass' }

/** A user that rules name. */
export interface Approver extends UserRef {
  readonly entry: DirectoryEntry
}

interface FinderParts {
  readonly directory: MemberDirectory
  readonly root: Dn
  readonly authorizations: ReadonlyMap<string, Authorization>
  readonly log: Logger
}

/** Finds users in the directory: approvers that rules name, and callers. Its errors are worth a retry. */
export class ApproverFinder {
  readonly #parts: FinderParts

  constructor(parts: FinderParts) {
    this.#parts = parts
  }

  /** All active users that match one of the rules, each once. Throws NO_APPROVERS for 1,000 or more. */
  async find(rules: readonly Rule[]): Promise<readonly Approver[]> {
    const found = new Map<Identity, Approver>()
    for (const rule of rules) {
      for (const entry of await this.#entries(rule)) {
        const login = entry.attributes.first('uid')
        if (login === undefined || login === '' || isDeactivated(entry.attributes)) continue
        const { identity } = entry
        if (!found.has(identity)) found.set(identity, { login, identity, entry })
      }
      if (found.size >= tooMany) throw tooManyFound(rule)
    }
    return [...found.values()]
  }

  /**
   * The user's entry; none for a caller without one, even if an entry has their login. All entries with that login
   * if only the login is known, as in rows from before identities.
   */
  async entriesOf({ identity, login, dn }: ApprovalUser): Promise<readonly DirectoryEntry[]> {
    if (isLoginOnly(identity)) return this.byLogin(login)
    const isOwn = (entry: DirectoryEntry): boolean => entry.identity === identity
    // First by the last known name of the entry, which every system can look up; then by the identifier.
    const seen = dn === undefined ? [] : await this.#search({ base: dn, scope: 'base', filter: people, limit: 1 })
    const known = seen.find(isOwn) ?? (await this.byLogin(login)).find(isOwn)
    const entry = known ?? (await this.#parts.directory.entry(identity))
    return entry === undefined ? [] : [entry]
  }

  /**
   * The display name; the login of a user without one, or who is not in the directory. With `withLogin`, the login
   * follows the name, which may be that of another user.
   */
  async nameOf(user: ApprovalUser, { withLogin = false } = {}): Promise<string> {
    const [entry, namesake] = await this.entriesOf(user)
    const login = oneLine(user.login, maxName)
    const name = oneLine((namesake === undefined ? entry?.attributes.first('displayName') : undefined) ?? '', maxName)
    if (name === '' || name === login) return login
    return withLogin ? `${name} (${login})` : name
  }

  /** Entries of any branch with the login. */
  byLogin(login: string): Promise<readonly DirectoryEntry[]> {
    return this.#holding('uid', login)
  }

  /** Entries with the name as login or mail address. */
  async named(name: string): Promise<readonly DirectoryEntry[]> {
    return [...(await this.byLogin(name)), ...(name.includes('@') ? await this.#holding('mail', name) : [])]
  }

  async #holding(attribute: string, value: string): Promise<readonly DirectoryEntry[]> {
    if (value === '') return []
    const filter: Filter = { kind: 'equal', attribute, value }
    const found = await this.#search({ base: this.#parts.root, scope: 'sub', filter, limit: maxNamesakes })
    return found.filter(({ attributes }) => attributes.values(attribute).some((one) => sameLogin(one, value)))
  }

  async #entries(rule: Rule): Promise<readonly DirectoryEntry[]> {
    const { directory, root } = this.#parts
    switch (rule.scope) {
      case 'dn':
        return this.#all(rule, { base: rule.dn, scope: 'sub', filter: people })
      case 'filter':
        return this.#all(rule, { base: root, scope: 'sub', filter: { kind: 'and', filters: [people, rule.filter] } })
      case 'group': {
        const members = await directory.members(rule.group, tooMany)
        if (members.length >= tooMany) throw tooManyFound(rule)
        return members
      }
      case 'dynamicGroup':
        return this.#dynamicMembers(rule)
      case 'custom':
        return this.#listed(rule)
    }
  }

  async #dynamicMembers(rule: Rule & { readonly group: Dn }): Promise<readonly DirectoryEntry[]> {
    const [group] = await this.#search({ base: rule.group, scope: 'base', filter: anything, limit: 1 })
    const found: DirectoryEntry[] = []
    for (const url of group?.attributes.values('memberURL') ?? []) {
      const { base, scope, filter } = parseMemberUrl(url)
      found.push(...(await this.#all(rule, { base, scope, filter: { kind: 'and', filters: [people, filter] } })))
      if (found.length >= tooMany) throw tooManyFound(rule)
    }
    return found
  }

  /** The users that a custom authorization would allow: names of entries, or logins. */
  async #listed(rule: Rule & { readonly scope: 'custom' }): Promise<readonly DirectoryEntry[]> {
    const authorization = this.#parts.authorizations.get(rule.name)
    if (authorization?.listPossibleApprovers === undefined) {
      this.#parts.log.warn('a custom authorization cannot say who may approve', { authorization: rule.name })
      return []
    }
    const names = await authorization.listPossibleApprovers(rule.params, rule.about)
    if (names.length >= tooMany) throw tooManyFound(rule)
    const found: DirectoryEntry[] = []
    for (const name of names) found.push(...(await this.#listedEntries(name)))
    return found
  }

  async #listedEntries(name: string): Promise<readonly DirectoryEntry[]> {
    if (!name.includes('=')) return this.byLogin(name)
    let base: Dn
    try {
      base = Dn.parse(name)
    } catch {
      return this.byLogin(name)
    }
    return this.#search({ base, scope: 'base', filter: people, limit: 1 })
  }

  async #all(rule: Rule, search: Omit<DirectorySearch, 'limit'>): Promise<readonly DirectoryEntry[]> {
    const found = await this.#search({ ...search, limit: tooMany })
    if (found.length >= tooMany) throw tooManyFound(rule)
    return found
  }

  #search(search: DirectorySearch): Promise<readonly DirectoryEntry[]> {
    return this.#parts.directory.search(search)
  }
}

const tooManyFound = ({ scope, constraint }: Rule): GatewayError =>
  new GatewayError(
    'NO_APPROVERS',
    `the rule ${scope} "${constraint}" finds ${tooMany} people or more, so none is asked`,
  )

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
