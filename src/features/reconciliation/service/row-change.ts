import type { AccountName, AttributeDifference, Difference } from '#features/reconciliation/plan/difference.ts'
import type { Plan } from '#features/reconciliation/store/plan-record.ts'
import { Attributes } from '#identity/attributes.ts'
import { ownIdentity } from '#identity/identity.ts'
import { userIdName } from '#identity/mapping/mapped-value.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { anyVersion, noVersion, type ReadVersion, type WorkflowCall } from '#sdk/workflow/workflow.ts'
import { ownTarget } from '#workflows/approvals/approval-audit.ts'

/** The parameters of runs that a plan starts. */
export const rowParameters = {
  reconciliation: 'reconciliation',
  action: 'reconciliationAction',
  plan: 'reconciliationPlan',
} as const

/** Why a row of an approved plan must not be applied to what is there now; undefined if it may. */
export function changeSince(planned: Difference, present: Difference | undefined): string | undefined {
  if (present === undefined) return 'The account agrees now.'
  if (present.kind !== planned.kind || present.action !== planned.action) {
    return `It was ${planned.kind} when the plan was made, and is ${present.kind} now: ${present.reason}`
  }
  for (const [what, before, now] of [
    ['person', planned.source, present.source],
    ['account', planned.target, present.target],
  ] as const) {
    if (!isSame(before, now)) return `The plan names another ${what}: ${nameOf(before)} then, ${nameOf(now)} now.`
  }
  const others = otherNames(planned.attributes, present.attributes)
  if (others.length > 0) return `Other values than in the plan: ${others.join(', ')}.`
  if (present.removes === true && planned.removes !== true) return `Not as in the plan: ${present.reason}`
  const groupsOf = ({ groups: { add, remove } }: Difference): string =>
    JSON.stringify([add.toSorted(), remove.toSorted()])
  return groupsOf(planned) === groupsOf(present) ? undefined : 'Other memberships than in the plan.'
}

const isSame = (one: AccountName | undefined, other: AccountName | undefined): boolean =>
  one?.id === other?.id && one?.login === other?.login

const nameOf = (name: AccountName | undefined): string => (name === undefined ? 'none' : `"${name.login}"`)

/** The attributes whose values differ. */
function otherNames(one: readonly AttributeDifference[], other: readonly AttributeDifference[]): string[] {
  const textOf = (list: readonly AttributeDifference[]) =>
    new Map(list.map(({ name, from, to }) => [name, JSON.stringify([from, to])]))
  const [before, now] = [textOf(one), textOf(other)]
  return [...new Set([...before.keys(), ...now.keys()])].filter((name) => before.get(name) !== now.get(name))
}

/** The user of the source as workflows get it. */
export interface WantedUser extends Pick<User, 'userID' | 'attributes'> {
  /** The attributes that the account must not have. */
  readonly cleared: readonly string[]
}

/** A difference as it was read just now, and what the account should be; absent for an account of no person. */
export interface PresentDifference {
  readonly difference: Difference
  readonly user?: WantedUser | undefined
}

interface RowChange extends PresentDifference {
  readonly plan: Pick<Plan, 'id' | 'reconciliation' | 'approval'>
  readonly workflow: string
  /** The name of the target that is compared. */
  readonly target: string
  /** The login at the target is that of the workflow's user; otherwise the target's own mapping makes it. */
  readonly copiesLogin: boolean
}

/**
 * The run that makes an account agree. Throws NOT_SUPPORTED if no run can. It fails if the account is deleted before it is
 * written, or changed where the target has versions.
 */
export function callOf({ plan, difference, user, workflow, target, copiesLogin }: RowChange): WorkflowCall {
  const { source, target: account, attributes, groups, action } = difference
  const isRenamed = account !== undefined && attributes.some(({ name }) => name === userIdName)
  if (!copiesLogin && (isRenamed || source === undefined)) {
    const does = isRenamed ? 'rename the account' : 'name the account of no person'
    const publicText = `The targetAttributes of the target make the login, so no workflow can ${does}.`
    throw new GatewayError('NOT_SUPPORTED', publicText, { publicText })
  }
  const userID = account !== undefined && (copiesLogin || user === undefined) ? account.login : (user?.userID ?? '')
  const { approval } = plan
  return {
    head: {
      workflow,
      subject: source?.login ?? userID,
      requester: ownTarget,
      ...(approval?.identity === undefined ? {} : { caller: approval.by }),
      who: { requester: ownIdentity('reconciliation'), caller: approval?.identity },
      reason: reasonOf(plan),
    },
    user: { userID, id: account?.id, attributes: user?.attributes ?? new Attributes(), groups: [] },
    ...(user === undefined ? {} : { cleared: user.cleared }),
    // The memberships that are not compared stay as they are.
    keepGroups: true,
    ...(groups.add.length + groups.remove.length === 0 ? {} : { groupChanges: groups }),
    asynchronous: true,
    ...(isRenamed && user !== undefined ? { newUserID: user.userID } : {}),
    basedOn: versionOf(difference, target),
    params: {
      [rowParameters.reconciliation]: plan.reconciliation,
      [rowParameters.action]: action,
      [rowParameters.plan]: plan.id,
    },
  }
}

function versionOf({ target: account, targetVersion }: Difference, target: string): ReadVersion {
  if (account === undefined) return { target, version: noVersion }
  return { target, version: targetVersion ?? anyVersion, userID: account.login }
}

function reasonOf({ id, reconciliation, approval }: RowChange['plan']): string {
  const why = approval?.reason === undefined ? '' : `: ${approval.reason}`
  return `reconciliation ${reconciliation}, plan ${id}, approved by ${approval?.by ?? 'no one'}${why}`
}
