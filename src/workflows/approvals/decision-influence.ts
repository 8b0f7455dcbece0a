import type { DirectoryEntry } from '#identity/directory.ts'
import { entryOf, type Identity, isLoginOnly, type UserRef } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { RunHead } from '#sdk/workflow/run-head.ts'

/** The only place that answers whether a user may influence a decision. Every path to one asks it. */

/** Users by identity. */
export interface Parties {
  readonly identities: readonly Identity[]
  /** Logins of those without a known directory identity. */
  readonly names: readonly string[]
}

/** The users who may not influence a decision, or only in some ways. */
export interface DecisionParties {
  /** Everyone with an interest in it: requester, caller and subject. */
  readonly involved: Parties
  /** Operators who chose its approver. */
  readonly reassignedBy?: Parties
  /** Involved users may decide in their own name. */
  readonly allowSelf?: boolean
}

/** Why a user may not influence a decision: as requester, caller or subject, or as an operator who chose the approver. */
export type Bar = 'involved' | 'reassigned'

/** A user with further names of theirs. */
export interface NamedUser extends UserRef {
  readonly names?: readonly string[]
}

interface Role {
  /** The user acts for an approver, or is chosen by another user, so `allowSelf` does not apply. */
  readonly forOthers?: boolean
}

/** Undefined if the user may influence the decision. */
export function barOf(
  { involved, reassignedBy, allowSelf = false }: DecisionParties,
  user: NamedUser,
  entries: readonly DirectoryEntry[],
  { forOthers = false }: Role = {},
): Bar | undefined {
  if (reassignedBy !== undefined && isOneOf(reassignedBy, user, entries)) return 'reassigned'
  return (forOthers || !allowSelf) && isOneOf(involved, user, entries) ? 'involved' : undefined
}

/**
 * Names count only for parties without a known identity. They are compared loosely, since targets may treat spellings as
 * equal that differ here: one approver too few is better than one who requested it.
 */
function isOneOf(
  parties: Parties,
  { identity, login, names = [] }: NamedUser,
  entries: readonly DirectoryEntry[],
): boolean {
  if ([identity, ...entries.map((entry) => entry.identity)].some((one) => parties.identities.includes(one))) return true
  const own = entries.flatMap(({ attributes }) => [...attributes.values('uid'), ...attributes.values('mail')])
  const known = new Set([login, ...names, ...own].map(looseName))
  return parties.names.some((name) => known.has(looseName(name)))
}

const looseName = (name: string): string => name.normalize('NFKC').trim().toLowerCase()

/** A user known only by a credential may also have an entry under the same name, so the name counts as well. */
export const partiesOf = (
  users: readonly { readonly login: string; readonly identity?: Identity | undefined }[],
): Parties => ({
  identities: users.flatMap(({ identity }) => identity ?? []),
  names: users.flatMap(({ identity, login }) =>
    identity === undefined || entryOf(identity) === undefined ? [login] : [],
  ),
})

type RunUsers = Pick<RunHead, 'who' | 'requester' | 'caller' | 'subject'>

/** Requester, caller and subject of a run. */
export const involvedIn = ({ who, requester, caller, subject }: RunUsers): Parties =>
  partiesOf([
    { login: requester, identity: who.requester },
    ...(caller === undefined ? [] : [{ login: caller, identity: who.caller }]),
    { login: subject, identity: who.subject },
  ])

/**
 * Whether the user, as an operator, may not change the run, being its requester, caller or subject. A user of whom only
 * the login is known, such as on the command line, is compared by login.
 */
export function isInvolvedIn(run: RunUsers, operator: NamedUser): boolean {
  const users = isLoginOnly(operator.identity) ? { ...run, who: {} } : run
  return barOf({ involved: involvedIn(users) }, operator, []) !== undefined
}

/** Throws ACCESS_DENIED for an operator who is involved in the run. */
export function requireUninvolved(run: RunUsers, operator: NamedUser): void {
  if (isInvolvedIn(run, operator)) throw operatorInvolved(operator)
}

export const operatorInvolved = ({ login }: UserRef): GatewayError =>
  new GatewayError('ACCESS_DENIED', `"${login}" would act as an operator on a request of their own`, {
    publicText: 'You requested or submitted this, or it is about you. Ask another operator.',
  })
