import type { AuditEntry } from '#domain/audit.ts'
import { ownTarget } from '#engine/approvals/approval-audit.ts'
import type { ApproverFinder } from '#engine/approvals/approver-finder.ts'
import type { UserRef } from '#identity/identity.ts'
import { isSwitchedOff } from '#identity/switched-off.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { ApprovalUser, DeputyPeriod } from '#sdk/workflow/approvals.ts'
import type { DelegationStore } from '#storage/delegation-store.ts'

const maxPeriods = 100
const maxPeriodMillis = 366 * 24 * 60 * 60 * 1000

export interface DelegationParts {
  readonly delegations: DelegationStore
  readonly finder: ApproverFinder
  readonly clock: Clock
}

/** Names a deputy for a time. Deputies have to be in the directory, and cannot hand on what they are given. */
export async function delegate(
  user: ApprovalUser,
  { deputy, starts, ends }: Omit<DeputyPeriod, 'id' | 'login'>,
  { delegations, finder, clock }: DelegationParts,
): Promise<DeputyPeriod> {
  const now = clock()
  const { identity, login } = user
  if (login === '') throw refused('only people who are known have deputies')
  if (deputy === '' || deputy.length > 500) throw refused('the deputy is not a login')
  if (!(starts < ends) || ends <= now) throw refused('the period ends before it starts, or is over')
  if (ends.getTime() - starts.getTime() > maxPeriodMillis) throw refused('the period is longer than a year')
  const [entry, namesake] = (await finder.byLogin(deputy)).filter(({ attributes }) => !isSwitchedOff(attributes))
  if (entry === undefined) throw refused(`no active user has the login "${deputy}"`)
  if (namesake !== undefined) throw refused(`several users have the login "${deputy}"`)
  if (entry.identity === identity) throw refused('no one is their own deputy')
  if ((await delegations.listOf(user)).length >= maxPeriods) throw refused('there are too many periods already')
  const period = { id: newId(), login, deputy: entry.attributes.first('uid') ?? deputy, starts, ends }
  const named: UserRef = { identity: entry.identity, login: period.deputy }
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
