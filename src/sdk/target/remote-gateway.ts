import type { JsonObject } from '#kernel/json.ts'
import type { Target, TargetRequest } from '#sdk/target/target.ts'

/** A call of a workflow at another gateway. */
export interface RemoteWorkflowCall {
  /** The URL of its call-workflow API. */
  readonly url: URL
  /** The body, as that API documents it. */
  readonly body: JsonObject
  /** The account that makes the call, and how far the clocks may differ; only a LastMile token has them. */
  readonly account: { readonly attribute: string; readonly user: string }
  readonly timeSkewMillis: number
}

/** The answer to a call that was accepted. */
export interface RemoteWorkflowAnswer {
  readonly status: number
  /** The run at the other gateway, if the answer names it. */
  readonly run?: string
}

/** Optional: the target is another gateway, whose workflows can be called. */
export interface RemoteGateway extends Target {
  /**
   * Every attempt of a step has the same idempotency key. Throws TARGET_UNREACHABLE if a retry may succeed, and
   * TARGET_FAILED if the call was refused.
   */
  callWorkflow(call: RemoteWorkflowCall, request: TargetRequest): Promise<RemoteWorkflowAnswer>
}

/** Whether the target is another gateway. */
export const isRemoteGateway = (target: Target): target is RemoteGateway => 'callWorkflow' in target
