import type { User } from '#identity/user.ts'
import type { Logger } from '#kernel/logger.ts'
import type { WorkflowStarter } from '#sdk/host.ts'
import type { Mapping } from '#sdk/mapping.ts'
import type { WorkflowResult } from '#sdk/workflow.ts'
import type { GatewayConfig } from './gateway-config.ts'
import type { GroupView } from './group-view.ts'
import type { KeyedLock } from './keyed-lock.ts'
import type { Lookups } from './lookups.ts'
import type { ScimCall } from './scim-call.ts'
import type { UserView } from './user-view.ts'

/** What the endpoints of one gateway share. */
export interface GatewayParts {
  readonly config: GatewayConfig
  readonly lookups: Lookups
  readonly toInternal: Mapping
  readonly userView: UserView
  readonly groupView: GroupView
  readonly workflows: WorkflowStarter
  readonly lock: KeyedLock
  readonly log: Logger
}

export interface WorkflowRequest {
  readonly name: string
  readonly user: User
  readonly params?: Readonly<Record<string, string>>
  readonly password?: string
}

/** SCIM never rewrites memberships as a list, so a workflow keeps them unless its own tasks change them. */
export function runWorkflow(
  parts: GatewayParts,
  { exchange }: ScimCall,
  request: WorkflowRequest,
): Promise<WorkflowResult> {
  const { name, user, params = {}, password } = request
  return parts.workflows.run({
    name,
    user,
    params,
    requestor: exchange.subject.uid,
    requestId: exchange.request.id,
    keepGroups: true,
    ...(password === undefined ? {} : { password }),
  })
}
