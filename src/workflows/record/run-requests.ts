import { GatewayError } from '#kernel/errors.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { UnfinishedChange } from '#sdk/workflow/workflow.ts'
import type { AppointedApprover } from './approval.ts'
import type { Operator } from './operator.ts'
import type { Run } from './run.ts'

/** A call that requested more than its caller may; only audit entries about it are stored. */
export interface RefusedCall {
  /** The workflow. */
  readonly name: string
  readonly caller: string
  /** The user that the call was about. */
  readonly subject: string
  readonly requestId: string
  /** One entry each. */
  readonly refused: readonly { readonly kind: 'entry' | 'group'; readonly attribute: string; readonly value: string }[]
}

/** A task gave a bound run another user than the one it was called for; `value` names that user. */
export class AnotherSubject extends GatewayError {
  readonly value: string

  constructor(detail: string, value: string) {
    super('ACCESS_DENIED', `a run may only write the user it was called for: ${detail}`, {
      publicText: 'The workflow would have written another user than the one it was called for, so it was ended.',
    })
    this.value = value
  }
}

/** How far the change of an unfinished run got, as far as it is known. */
type UnfinishedState =
  /** A part was made, and the target has not made the rest. */
  | 'part'
  /** It is unknown whether the target has made its part. */
  | 'unknown'
  /** It is an earlier change, which comes first. */
  | 'earlier'
  /** It is the run of an earlier, equal call. */
  | 'equal'
  /** It is an earlier change with a password that a target lacks; this one would replace it without that password. */
  | 'password'

interface UnfinishedOptions {
  readonly state: UnfinishedState
  /** Workers try it again. */
  readonly isRetried: boolean
  readonly target?: string
  readonly cause?: GatewayError
}

/**
 * A call whose run has changed something, or may have, and then failed. The run is stored: workers retry it or, if that
 * can't help, it is an incident. Later changes of the same user wait for it.
 */
export class UnfinishedRun extends GatewayError {
  readonly run: string

  constructor(run: string, options: UnfinishedOptions) {
    const { isRetried, cause } = options
    const isValue = !isRetried && cause?.code === 'BAD_REQUEST'
    const rest = isRetried
      ? `Run ${run} tries again. Send the request again later.`
      : isValue
        ? `Correct the value and send the request again. Run ${run} is on hold.`
        : `Run ${run} ${options.state === 'password' ? 'is on hold' : 'needs an administrator'}.`
    super(
      isRetried ? 'TARGET_UNREACHABLE' : isValue ? 'BAD_REQUEST' : 'WORKFLOW_FAILED',
      `run ${run} is unfinished: ${cause?.message ?? 'it was interrupted'}`,
      {
        attribute: cause?.attribute,
        publicText: (shown) =>
          [...(cause === undefined ? [] : [sentence(cause.textNaming(shown))]), stateText(options), rest].join(' '),
        ...(isRetried ? { retryAfter: Math.max(unfinishedSeconds, cause?.retryAfter ?? 0) } : {}),
        cause,
        keyword: isValue ? cause.keyword : undefined,
      },
    )
    this.run = run
  }
}

/** Texts of targets may lack their full stop. */
const sentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`)

function stateText({ state, target }: UnfinishedOptions): string {
  switch (state) {
    case 'part':
      return `The change was made in part.${target === undefined ? '' : ` The target "${target}" has not completed it.`}`
    case 'unknown':
      return target === undefined
        ? 'It is unknown whether the change was made.'
        : `It is unknown whether the target "${target}" has made the change.`
    case 'earlier':
      return 'An earlier change of the same user or group is unfinished.'
    case 'equal':
      return 'The same change was requested before and is unfinished.'
    case 'password':
      return 'An earlier change of the same user set a password and is unfinished. Send a password with this change.'
  }
}

/** An incident that changed a user can't continue: another run has changed the user since, and this one would undo that. */
export class NewerChange extends GatewayError {
  constructor(run: string, { subject, time, workflow }: Pick<AuditEntry, 'subject' | 'time' | 'workflow'>) {
    const newer = `"${subject}" was changed at ${time.toISOString()} by run ${workflow.id} (${workflow.name})`
    super('CONFLICT', `run ${run} is older than another change: ${newer}`, {
      publicText: `This run would undo a newer change: ${newer}. Request what is still missing again, then cancel this run.`,
    })
  }
}

/** When to repeat a request that waits for an unfinished change. */
const unfinishedSeconds = 5

/** An earlier run of the subject must end first, and did not in time. */
export const stillUnderWay = (subject: string): GatewayError =>
  new GatewayError('TARGET_UNREACHABLE', `an earlier run for "${subject}" is still to be carried out`, {
    publicText: 'An earlier change of the same user or group is unfinished. Try again.',
    retryAfter: unfinishedSeconds,
  })

/** The changes that must be finished before another one. */
export interface EarlierChanges {
  /** Logins of the user; at most two. */
  readonly subjects: readonly string[]
  readonly resource: string
  /** Who wants the other change; appears in the audit. */
  readonly requester: string
}

export interface SettledChanges {
  /** The resources of the requester's unfinished changes that were finished meanwhile. */
  readonly finished: readonly string[]
  /** What a target refused again. A later change of the same resource may replace it; see `WorkflowCall.replaces`. */
  readonly refused: readonly UnfinishedChange[]
}

export interface PinnedRun extends Run {
  /** The hashes of the definitions that it follows, by workflow: its own, and of the workflows it can call. */
  readonly definitions: Readonly<Record<string, string>>
}

interface RunChange {
  readonly id: string
  /** The fence of the run as it was shown; VERSION_MISMATCH if the run has changed since. */
  readonly fence: number
  readonly reason?: string
}

/** An operator's change of a run of other users. */
export interface RunIntervention extends RunChange {
  /** The login appears in the audit. */
  readonly by: Operator
}

export interface RunRetry extends RunIntervention {
  /** The only user who decides the approval, until it escalates; for a run whose approval found no approver. */
  readonly appointed?: AppointedApprover
}

/** The end of a run by the user who requested it, which the caller has checked. */
export interface RunWithdrawal extends RunChange {
  /** The login; appears in the audit. */
  readonly by: string
}
