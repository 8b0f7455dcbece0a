import type { ReconciliationConfig } from '#config/configuration/configuration.ts'
import { Attributes } from '#identity/attributes.ts'
import { userIdName } from '#identity/mapping/mapped-value.ts'
import { compareEntries, valuesOf } from './compare.ts'
import type { Account, ComparedEntry, Person } from './compared-entry.ts'
import type { AccountName, Difference } from './difference.ts'

/** What the configuration says about differences, and what the target can do. */
export type Policy = Pick<ReconciliationConfig, 'missing' | 'different' | 'extra' | 'ambiguous'> & {
  readonly renamesUsers: boolean
  /** The login at the target is that of the user that workflows get; otherwise the target's own mapping makes it. */
  readonly copiesLogin: boolean
  /** The target deactivates accounts in place of deleting them. */
  readonly keepsDeleted: boolean
  /** Whether an account with these values is deactivated. */
  isDeactivated(status: Attributes): boolean
}

/** What correlation found for a person. */
export type Match =
  | { readonly kind: 'account'; readonly account: Account; readonly rule: string }
  /** `people`: others whose account it could be as well. */
  | {
      readonly kind: 'ambiguous'
      readonly rule: string
      readonly between: 'accounts' | 'people'
      readonly candidates: readonly AccountName[]
    }
  /** An account has the login that the person would get. */
  | { readonly kind: 'taken'; readonly account: AccountName }
  /** Others of the source would get the same login. */
  | { readonly kind: 'shared'; readonly people: readonly AccountName[] }
  | { readonly kind: 'none' }

const nothing = { attributes: [], groups: { add: [], remove: [] } } as const

/** The difference of one person; undefined if the account agrees. */
export function decidePerson(key: string, person: Person, match: Match, policy: Policy): Difference | undefined {
  const { name: source, wanted } = person
  const row = { key: `person ${key}`, source, ...nothing }
  if (wanted === undefined) {
    const target = match.kind === 'account' ? { target: match.account.name, rule: match.rule } : {}
    const reason = `What this person should have is not known: ${person.problem ?? 'the mapping failed'}`
    return { ...row, ...target, kind: 'unknown', action: 'report', reason }
  }
  switch (match.kind) {
    case 'account':
      return decidePair(row, person, match.account, match.rule, policy)
    case 'none':
      return {
        ...row,
        kind: 'missing',
        action: policy.missing,
        attributes: listed(wanted.attributes),
        groups: { add: wanted.groups, remove: [] },
        reason: `No account belongs to this person.${only(policy.missing)}`,
      }
    case 'taken': {
      const reason = `The account "${match.account.login}" has the login that this person would get, but no rule connects them. Decide with a link, or rename one of them.`
      return ambiguous({ ...row, target: match.account }, policy, [match.account], reason)
    }
    case 'shared': {
      const reason = `This person would get the login "${wanted.login}", and so would ${countOf(match.people, 'other person', 'other people')}.`
      return ambiguous(row, policy, match.people, reason)
    }
    case 'ambiguous': {
      const { rule, between, candidates } = match
      const reason =
        between === 'accounts'
          ? `By ${rule}, ${countOf(candidates, 'account', 'accounts')} may belong to this person. Decide with a link.`
          : `By ${rule}, the account may also belong to ${countOf(candidates, 'other person', 'other people')}. Decide with a link.`
      return ambiguous({ ...row, rule }, policy, candidates, reason)
    }
  }
}

type Row = Pick<Difference, 'key' | 'source' | 'target' | 'rule' | 'attributes' | 'groups'>

const ambiguous = (row: Row, policy: Policy, candidates: readonly AccountName[], reason: string): Difference => ({
  ...row,
  kind: 'ambiguous',
  action: policy.ambiguous,
  candidates: candidates.slice(0, 10),
  reason,
})

function decidePair(
  row: Row,
  { wanted }: Person,
  account: Account,
  rule: string,
  policy: Policy,
): Difference | undefined {
  if (wanted === undefined) return undefined
  const { attributes, groups } = compareEntries(wanted, account)
  // Who was deactivated as extra, and is a person again, is to be let in again.
  const isOff =
    turnsOff(policy) && isDeactivated(account, policy) && !policy.isDeactivated(Attributes.from(wanted.attributes))
  const memberships = groups.add.length + groups.remove.length
  if (attributes.length + memberships === 0 && !isOff) return undefined
  const isRenamed = attributes.some(({ name }) => name === userIdName)
  const obstacle = isRenamed ? renamingObstacle(policy) : undefined
  const parts = [
    ...(isOff ? ['the account is deactivated'] : []),
    ...(isRenamed ? [`the login is "${account.login}" instead of "${wanted.login}"`] : []),
    ...differing(attributes.flatMap(({ name }) => (name === userIdName ? [] : [name]))),
    ...(memberships === 0 ? [] : [`${memberships} ${memberships === 1 ? 'membership differs' : 'memberships differ'}`]),
  ]
  const action = obstacle === undefined ? policy.different : 'report'
  const lost = action === 'report' ? [] : lossesOf(wanted, account, attributes, policy)
  const why = obstacle === undefined ? only(policy.different) : ` Nothing is changed: ${obstacle}.`
  const loss = lost.length === 0 ? '' : ` The change ${lost.join(' and ')}.`
  return {
    ...row,
    kind: 'different',
    action,
    target: account.name,
    targetVersion: account.version,
    rule,
    attributes,
    groups,
    ...(lost.length === 0 ? {} : { removes: true }),
    reason: `${capitalized(parts.join(', and '))}.${loss}${why}`,
  }
}

const madeLogin = 'the targetAttributes of the target make the login'

function renamingObstacle({ renamesUsers, copiesLogin }: Policy): string | undefined {
  if (!renamesUsers) return 'the target cannot rename accounts'
  return copiesLogin ? undefined : madeLogin
}

/** An extra account ends up deactivated. */
const turnsOff = ({ extra, keepsDeleted }: Policy): boolean =>
  extra === 'deactivate' || (extra === 'delete' && keepsDeleted)

const isDeactivated = ({ status }: Account, policy: Policy): boolean => policy.isDeactivated(Attributes.from(status))

/** What a change takes from an account that limits protect. */
function lossesOf(
  wanted: ComparedEntry,
  account: Account,
  differing: Difference['attributes'],
  policy: Policy,
): string[] {
  const after = Attributes.from(account.status)
  // Those that it gets instead do not count.
  const keeps = new Set(wanted.groups.map((name) => name.toLowerCase()))
  for (const { name } of differing) after.set(name, valuesOf(wanted, name))
  return [
    ...(!isDeactivated(account, policy) && policy.isDeactivated(after) ? ['deactivates the account'] : []),
    ...(account.groups.length > 0 && account.groups.every((name) => !keeps.has(name.toLowerCase()))
      ? ['takes all compared memberships']
      : []),
  ]
}

const mostNames = 5

function differing(names: readonly string[]): string[] {
  if (names.length === 0) return []
  if (names.length > mostNames) return [`${names.length} attributes differ`]
  return [`${names.join(', ')} ${names.length === 1 ? 'differs' : 'differ'}`]
}

/**
 * The difference of an account in scope of no person; undefined if nothing is to be done. `unsure`: some people
 * could not be mapped, and one of them may have it.
 */
export function decideExtra(key: string, account: Account, policy: Policy, unsure: number): Difference | undefined {
  const { extra } = policy
  if (turnsOff(policy) && isDeactivated(account, policy)) return undefined
  if (extra === 'removeMemberships' && account.groups.length === 0) return undefined
  const obstacle = extra === 'report' ? undefined : removalObstacle(policy, unsure)
  const kept = extra === 'delete' && turnsOff(policy) ? ' The target keeps deleted accounts: it is deactivated.' : ''
  return {
    key: `account ${key}`,
    kind: 'extra',
    action: obstacle === undefined ? extra : 'report',
    target: account.name,
    targetVersion: account.version,
    attributes: [],
    groups: { add: [], remove: extra === 'removeMemberships' ? account.groups : [] },
    reason: `No person of the source has this account.${obstacle === undefined ? `${kept}${only(extra)}` : ` Nothing is done: ${obstacle}.`}`,
  }
}

function removalObstacle({ copiesLogin }: Policy, unsure: number): string | undefined {
  if (!copiesLogin) return `${madeLogin}, so no workflow can name the account of no person`
  const people = unsure === 1 ? 'one person' : `${unsure} people`
  return unsure === 0 ? undefined : `${people} could not be mapped and may have it`
}

const listed = (attributes: Readonly<Record<string, readonly string[]>>): Difference['attributes'] =>
  compareEntries({ login: '', attributes, groups: [] }, { login: '', attributes: {}, groups: [] }).attributes

const only = (action: string): string => (action === 'report' ? ' It is only reported.' : '')

const countOf = (list: readonly unknown[], one: string, many: string): string =>
  list.length === 1 ? `one ${one}` : `${list.length > 10 ? 'more than 10' : list.length} ${many}`

const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
