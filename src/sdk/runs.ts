import type { RunIdentities, UserRef } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { WorkflowCall, WorkflowResult } from '#sdk/workflow.ts'

/**
 * `ready` is to be executed, `running` is being executed, `waiting` goes on with a decision or at a time, `incident`
 * needs an administrator. The others are ends.
 */
export type RunPhase = 'ready' | 'running' | 'waiting' | 'incident' | 'completed' | 'failed' | 'cancelled'

/** A run that outlived its call. What it works on, attributes and passwords, is not part of it. */
export interface RunView {
  readonly id: string
  /** The workflow. */
  readonly name: string
  readonly state: RunPhase
  readonly subject: string
  readonly requestor: string
  /** The authenticated caller, where that is another than the requestor. */
  readonly caller?: string
  /** Who they are. */
  readonly who: RunIdentities
  readonly reason?: string
  readonly requestId?: string
  /** Attempts begun of the present step. */
  readonly attempt: number
  /** Changes with whatever happens to the run; an intervention names the one it was decided on. */
  readonly fence: number
  readonly worker?: string
  readonly due: Date
  readonly deadline?: Date
  /** When the access is to end, as it was asked for. */
  readonly accessEnds?: Date
  readonly incident?: { readonly task: string; readonly code: string; readonly message: string }
  /** Who asked for its end, and why. */
  readonly cancel?: { readonly by: string; readonly reason?: string }
  /** A target was changed. */
  readonly touched: boolean
  readonly created: Date
  readonly updated: Date
  readonly ended?: Date
}

/** One execution of one task. */
export interface RunStepView {
  readonly id: number
  readonly number: number
  readonly attempt: number
  /** Its place: `workflow:0/onSuccess/1`. */
  readonly task: string
  readonly taskType: string
  readonly label?: string
  readonly started: Date
  readonly ended: Date
  readonly outcome: string
  readonly error?: string
}

export interface RunFilter {
  /** All that are given must hold; logins are compared without regard to letter case. */
  readonly states?: readonly RunPhase[]
  readonly name?: string
  readonly subject?: string
  readonly requestor?: string
  /** Only runs that this user requested, or that are about this user. */
  readonly requestedBy?: UserRef
  readonly about?: UserRef
  /** Continues behind a page: the `next` it came with. */
  readonly after?: string
  /** At most 500 come back, whatever is asked. */
  readonly limit: number
}

export interface RunViewPage {
  /** Latest first. */
  readonly runs: readonly RunView[]
  readonly next?: string
}

/** A call that may come again and is to be answered as the first time. */
export interface CallKey {
  /** Who calls what. Keys of different callers have nothing to do with each other. */
  readonly scope: string
  readonly key: string
  /** Of what was asked. */
  readonly bodyHash: string
}

export type RunStart =
  | { readonly kind: 'started' | 'repeated'; readonly result: WorkflowResult }
  /** The same call is being answered at this moment. */
  | { readonly kind: 'under-way'; readonly run: string }
  /** The key was used for something else. */
  | { readonly kind: 'other-body' }

/** A call that asked for more than its caller may; only audit entries of it are kept. */
export interface RefusedCall {
  /** The workflow. */
  readonly name: string
  readonly caller: string
  /** The user whom the call was about. */
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

export interface RunIntervention {
  readonly id: string
  /** Of the run as it was shown; VERSION_MISMATCH when something happened to it since. */
  readonly fence: number
  /** Who does it; stands in the audit. */
  readonly by: string
  readonly reason?: string
}

/** The runs of this installation, whichever process executes them. Whoever calls has checked who may. */
export interface RunAccess {
  /** As `WorkflowStarter.run`, and with a key once only. Throws as that does; the key is free again then. */
  start(call: WorkflowCall, key?: CallKey): Promise<RunStart>
  /** Writes the refusal into the audit, at a bounded rate per caller; never rejects, since the call is refused anyway. */
  refuse(call: RefusedCall): Promise<void>
  get(id: string): Promise<RunView | undefined>
  /** Throws BAD_REQUEST for an `after` that no page gave. */
  list(query: RunFilter): Promise<RunViewPage>
  /** In their order, at most 500 behind the one with that id. */
  steps(id: string, after?: number): Promise<readonly RunStepView[]>
  /** An incident is tried again. Throws NOT_FOUND, CONFLICT when it is no incident, VERSION_MISMATCH. */
  retry(intervention: RunIntervention): Promise<void>
  /** An incident goes on behind the task that failed. Throws as `retry` does. */
  skip(intervention: RunIntervention): Promise<void>
  /**
   * Ends a run before its next task; one that is running is `running` until then. `onlyUntouched`: while no target was
   * changed, CONFLICT otherwise. Throws NOT_FOUND, CONFLICT when it has ended, VERSION_MISMATCH.
   */
  cancel(intervention: RunIntervention & { readonly onlyUntouched?: boolean }): Promise<RunPhase>
}
