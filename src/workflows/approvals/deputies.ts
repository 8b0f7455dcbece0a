import { isDeactivated } from '#identity/attributes.ts'
import type { UserRef } from '#identity/identity.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { ApprovalUser } from '#workflows/record/operator.ts'
import type { DelegationStore } from '#workflows/store/delegation-store.ts'
import { ownTarget } from './approval-audit.ts'
import type { ApproverFinder } from './approvers.ts'
import type { DeputyPeriod, NewDeputyPeriod } from './desk-requests.ts'

const maxPeriods = 100
const maxPeriodMillis = 366 * 24 * 60 * 60 * 1000

interface DelegationParts {
  readonly delegations: DelegationStore
  readonly finder: ApproverFinder
  readonly clock: Clock
}

/** The users that these deputies may decide for now. */
export async function representedBy(deputy: readonly UserRef[], delegations: DelegationStore): Promise<UserRef[]> {
  const found = await Promise.all(deputy.map((ref) => delegations.representedBy(ref)))
  return [...new Map(found.flat().map((user) => [user.identity, user])).values()]
}

export async function periodsOf(user: UserRef, delegations: DelegationStore): Promise<DeputyPeriod[]> {
  const found = await delegations.listOf(user)
  return found.map(({ user: { login }, deputy, ...period }) => ({
    ...period,
    login,
    deputy: deputy.login,
    deputyIdentity: deputy.identity,
  }))
}

/** Names a deputy for a period. Deputies must be in the directory, and can't delegate further. */
export async function delegate(
  user: ApprovalUser,
  { deputy, starts, ends }: NewDeputyPeriod,
  { delegations, finder, clock }: DelegationParts,
): Promise<DeputyPeriod> {
  const now = clock()
  const { identity, login } = user
  if (login === '') throw refused('only people who are known have deputies')
  if (deputy === '' || deputy.length > 500) throw refused('the deputy is not a login')
  if (!(starts < ends) || ends <= now) throw refused('the period ends before it starts, or is over')
  if (ends.getTime() - starts.getTime() > maxPeriodMillis) throw refused('the period is longer than a year')
  const [entry, namesake] = (await finder.byLogin(deputy)).filter(({ attributes }) => !isDeactivated(attributes))
  if (entry === undefined) throw refused(`no active user has the login "${deputy}"`)
  if (namesake !== undefined) throw refused(`several users have the login "${deputy}"`)
  if (entry.identity === identity) throw refused('no one is their own deputy')
  if ((await delegations.listOf(user)).length >= maxPeriods) throw refused('there are too many periods already')
  const named: UserRef = { identity: entry.identity, login: entry.attributes.first('uid') ?? deputy }
  const period = { id: newId(), login, deputy: named.login, deputyIdentity: named.identity, starts, ends }
  const value = `${period.deputy} from ${starts.toISOString()} to ${ends.toISOString()}`
  await delegations.add({ id: period.id, user: { identity, login }, deputy: named, starts, ends }, [
    delegationRow(period.id, login, now, 'add', value),
  ])
  return period
}

export async function endDelegation(
  user: ApprovalUser,
  id: string,
  { delegations, clock }: DelegationParts,
): Promise<void> {
  const { login } = user
  const [period] = (await delegations.listOf(user)).filter((one) => one.id === id)
  const audit = period && [delegationRow(id, login, clock(), 'delete', period.deputy.login)]
  if (audit === undefined || !(await delegations.remove(user, id, audit))) {
    throw new GatewayError('NOT_FOUND', `"${login}" has no delegation ${id}`)
  }
}

const delegationRow = (
  id: string,
  login: string,
  time: Date,
  action: AuditEntry['action'],
  value: string,
): AuditEntry => ({
  id: newId(),
  time,
  requestor: login,
  subject: login,
  workflow: { id, name: 'delegation' },
  target: ownTarget,
  kind: 'entry',
  action,
  attribute: 'deputy',
  value,
})

const refused = (detail: string): GatewayError =>
  new GatewayError('BAD_REQUEST', `a delegation is refused: ${detail}`, { publicText: `This cannot be: ${detail}.` })
