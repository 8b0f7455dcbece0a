import type { Configuration, CorrelationRule, ReconciliationConfig } from '#config/configuration/configuration.ts'
import type { Account, ComparedEntry, Person } from '#features/reconciliation/plan/compared-entry.ts'
import type { Policy } from '#features/reconciliation/plan/decide.ts'
import type { AccountLink } from '#features/reconciliation/plan/difference.ts'
import { Attributes, deactivationAttributes, isDeactivated, isSecretAttribute } from '#identity/attributes.ts'
import { userEntrySource } from '#identity/entry-source.ts'
import type { AttributeSource } from '#identity/filter/attribute-source.ts'
import { matches } from '#identity/filter/evaluate.ts'
import { filterAttributes } from '#identity/filter/rewrite-filter.ts'
import { userIdName, userSource } from '#identity/mapping/mapped-value.ts'
import type { User } from '#identity/user.ts'
import { asGatewayError } from '#kernel/errors.ts'
import type { Logger } from '#kernel/logger.ts'
import type { Scope } from '#kernel/scope.ts'
import type { Mapping, PreparedMapping } from '#sdk/mapper/mapping.ts'
import type { LookupHost, LookupTarget } from '#sdk/target/target.ts'
import { assignMapped } from '#sdk/workflow/workflow-user.ts'
import { isInScope, isMember, lookupTarget, nameOf, openPeople, type PeopleSource } from './people-source.ts'

/** Stored decisions about which account a person has. */
export interface Links {
  /** Of these people, by their ids, or logins if the source has no ids. */
  links(sources: readonly string[]): Promise<readonly AccountLink[]>
  /** Of these accounts. */
  linksByTarget(targets: readonly string[]): Promise<readonly AccountLink[]>
}

/** Both sides of a reconciliation, and what belongs to them. */
export interface ComparedSystems extends Links {
  readonly config: ReconciliationConfig
  readonly source: PeopleSource
  readonly target: LookupTarget
  readonly mapping: PersonMapping
  /** Where the temporary file of a comparison is created. It is never visible under a name for longer than a moment. */
  readonly folder: string
  readonly signal?: AbortSignal | undefined
  readonly log: Logger
}

/** The parts of `ComparedSystems` that a configuration has. The scope owns what is created. */
export async function openSystems(
  config: ReconciliationConfig,
  { targets: configured }: Pick<Configuration, 'targets'>,
  host: LookupHost,
  scope: Scope,
): Promise<Pick<ComparedSystems, 'config' | 'source' | 'target' | 'mapping'>> {
  const target = lookupTarget(host.targets, config.target)
  const readsGroups = config.groups.length > 0 || config.source.groups.length > 0
  const source = openPeople(config.source, host.targets, host.directory, readsGroups)
  const ofTarget = configured.get(config.target)?.mapping
  const create = async (prepared: PreparedMapping | undefined) => prepared && scope.own(await prepared.create(host))
  const own = await create(config.mapping)
  const last = await create(ofTarget)
  const mapping = new PersonMapping({
    config,
    target,
    hasIds: source.hasIds,
    prepared: { own: config.mapping, last: ofTarget },
    own,
    last,
  })
  return { config, source, target, mapping }
}

/** What plans call a rule. */
export const ruleName = (rule: CorrelationRule): string => (rule.kind === 'login' ? 'login' : rule.target)

/** Letter case counts in an `externalId` (RFC 7643), so that an application can be asked for one. */
export const isExact = (rule: CorrelationRule): boolean =>
  rule.kind !== 'login' && rule.target.toLowerCase() === 'externalid'

export const policyOf = ({ config, target, mapping }: ComparedSystems): Policy => ({
  missing: config.missing,
  different: config.different,
  extra: config.extra,
  ambiguous: config.ambiguous,
  renamesUsers: target.renamesUsers === true,
  copiesLogin: mapping.copiesLogin,
  keepsDeleted: target.keepsDeleted === true,
  isDeactivated: (status) =>
    config.deactivated === undefined ? isDeactivated(status) : matches(config.deactivated, status),
})

/** The texts by which people and accounts are found, for each rule of the correlation. */
export type RuleKeys = readonly (readonly string[])[]

/** A person of the source, or an account of the target, with what it is found by. */
export interface Keyed<T> {
  readonly entry: T
  readonly inScope: boolean
  readonly keys: RuleKeys
}

/** The user that a workflow gets. */
export type WantedUser = Pick<User, 'userID' | 'attributes' | 'groups'>

interface MappingParts {
  readonly config: ReconciliationConfig
  readonly target: LookupTarget
  readonly hasIds: boolean
  readonly prepared: { readonly own: PreparedMapping | undefined; readonly last: PreparedMapping | undefined }
  readonly own: Mapping | undefined
  readonly last: Mapping | undefined
}

/** Makes people and accounts of both sides comparable. */
export class PersonMapping {
  /** What to read of people; undefined if a mapper may read anything. */
  readonly personAttributes: readonly string[] | undefined
  /** What to read of accounts. */
  readonly accountAttributes: readonly string[]
  /** The login at the target is that of the user that workflows get. */
  readonly copiesLogin: boolean
  /** The attribute of the source with the login that people get at the target; undefined if it is made in another way. */
  readonly loginSource: string | undefined
  readonly #parts: MappingParts
  /** The attributes that are compared. Secrets aren't. */
  readonly #compared: readonly string[]
  /** The groups that are compared, in lower case. */
  readonly #groups: ReadonlySet<string> | 'all'

  constructor(parts: MappingParts) {
    this.#parts = parts
    const { config, prepared } = parts
    this.#groups = config.groups === 'all' ? 'all' : new Set(config.groups.map((name) => name.toLowerCase()))
    const made = (prepared.last ?? prepared.own)?.produces ?? []
    const names = made.map(({ attribute }) => attribute).filter((name) => name !== userIdName)
    this.#compared = names.filter((name) => !isSecretAttribute(name))
    const first = prepared.own ?? prepared.last
    const rules = config.correlation
    const { filter: people } = config.source
    const { filter: accounts } = config.scope
    this.personAttributes =
      first === undefined || first.opaque
        ? undefined
        : distinct([
            ...first.reads.map(({ attribute }) => attribute),
            ...rules.flatMap((rule) => (rule.kind === 'attribute' ? [rule.source] : [])),
            ...(people === undefined ? [] : filterAttributes(people)),
          ])
    this.accountAttributes = distinct([
      ...this.#compared,
      ...rules.flatMap((rule) => (rule.kind === 'login' ? [] : [rule.target])),
      ...(accounts === undefined ? [] : filterAttributes(accounts)),
      ...(config.deactivated === undefined ? deactivationAttributes : filterAttributes(config.deactivated)),
    ])
    this.copiesLogin = prepared.last?.produces.some(({ attribute }) => attribute === userIdName) !== true
    this.loginSource = loginSource([prepared.own, prepared.last])
  }

  /** The user that a workflow gets. Attributes without a value are those that the account must not have. */
  async user({ userID, attributes, groups }: User): Promise<WantedUser & { readonly cleared: readonly string[] }> {
    const { own, prepared } = this.#parts
    const user = { userID, attributes, groups: this.#comparedGroups(groups) }
    if (own === undefined) return { ...user, cleared: [] }
    const mapped = { ...user, attributes: new Attributes() }
    assignMapped(mapped, await own.apply(userSource({ userID, attributes, groups })))
    const names = (prepared.own?.produces ?? []).map(({ attribute }) => attribute)
    return { ...mapped, cleared: names.filter((name) => name !== userIdName && !mapped.attributes.has(name)) }
  }

  /** A failed mapping is a problem of the person, unless a system that it needs doesn't answer. */
  async person(found: User): Promise<Keyed<Person>> {
    const { config, hasIds } = this.#parts
    const name = hasIds && found.id !== undefined ? { id: found.id, login: found.userID } : { login: found.userID }
    const inScope = isInScope(config.source, found)
    if (!inScope) return { entry: { name, wanted: undefined }, inScope, keys: [] }
    try {
      const wanted = await this.#wanted(found)
      return { entry: { name, wanted }, inScope, keys: this.#personKeys(found, wanted) }
    } catch (thrown) {
      const error = asGatewayError(thrown)
      if (unanswered.has(error.code)) throw error
      return {
        entry: { name, wanted: undefined, problem: error.publicText },
        inScope,
        keys: this.#personKeys(found, undefined),
      }
    }
  }

  async #wanted(found: User): Promise<ComparedEntry> {
    const { last } = this.#parts
    const user = await this.user(found)
    const mapped = { userID: user.userID, attributes: last === undefined ? user.attributes : new Attributes() }
    if (last !== undefined) assignMapped(mapped, await last.apply(userSource(user)))
    return { login: mapped.userID, attributes: valuesIn(mapped.attributes, this.#compared), groups: user.groups }
  }

  account(found: User): Keyed<Account> {
    const { config, target } = this.#parts
    const { scope, deactivated } = config
    const source = userEntrySource(found)
    const inScope =
      (scope.filter === undefined || matches(scope.filter, source)) && isMember(found.groups, scope.groups)
    const entry: Account = {
      name: nameOf(found, target),
      version: found.version,
      login: found.userID,
      attributes: valuesIn(found.attributes, this.#compared),
      groups: this.#comparedGroups(found.groups),
      status: valuesIn(source, deactivated === undefined ? deactivationAttributes : filterAttributes(deactivated)),
    }
    const keys = config.correlation.map((rule) => (rule.kind === 'login' ? [found.userID] : source.values(rule.target)))
    return { entry, inScope, keys: keys.map(usable) }
  }

  #personKeys(found: User, wanted: ComparedEntry | undefined): RuleKeys {
    const source = userEntrySource(found)
    const keysOf = (rule: CorrelationRule): readonly string[] => {
      if (rule.kind === 'id') return [found.id ?? found.userID]
      if (rule.kind === 'attribute') return source.values(rule.source)
      return wanted === undefined ? [] : [wanted.login]
    }
    return this.#parts.config.correlation.map((rule) => usable(keysOf(rule)))
  }

  #comparedGroups(groups: readonly string[]): string[] {
    const compared = this.#groups
    return compared === 'all' ? [...groups] : groups.filter((name) => compared.has(name.toLowerCase()))
  }
}

function valuesIn(source: AttributeSource, names: Iterable<string>): Record<string, readonly string[]> {
  const pairs = Array.from(names, (name) => [name, source.values(name)] as const)
  return Object.fromEntries(pairs.filter(([, values]) => values.length > 0))
}

/** Nothing is known of anyone while a system doesn't answer. */
const unanswered: ReadonlySet<string> = new Set([
  'TARGET_UNREACHABLE',
  'TARGET_TIMEOUT',
  'TOO_MANY_REQUESTS',
  'SHUTTING_DOWN',
])

/** The most values of an attribute by which an entry is found. */
const mostKeys = 50

const usable = (values: readonly string[]): readonly string[] =>
  values.filter((value) => value.trim() !== '').slice(0, mostKeys)

/** Not the names that searches reserve. */
const reserved: ReadonlySet<string> = new Set(['userid', 'id', 'groups', 'meta.created', 'meta.lastmodified'])

const distinct = (names: readonly string[]): string[] => {
  const byKey = new Map(names.map((name) => [name.toLowerCase(), name]))
  return [...byKey].flatMap(([key, name]) => (reserved.has(key) ? [] : [name]))
}

/** Through both mappings, the last one first, as long as each copies one attribute. */
function loginSource(mappings: readonly (PreparedMapping | undefined)[]): string | undefined {
  let name: string = userIdName
  for (const prepared of mappings.toReversed()) {
    if (prepared === undefined) continue
    const isMade = prepared.produces.some(({ attribute }) => attribute.toLowerCase() === name.toLowerCase())
    if (!isMade && name === userIdName) continue
    const copied = prepared.copies.get(name.toLowerCase())
    if (copied === undefined) return undefined
    name = copied
  }
  return name === userIdName ? 'userID' : name
}
