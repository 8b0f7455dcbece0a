import type { KeyedQueue } from '#kernel/keyed-queue.ts'
import type { Logger } from '#kernel/logger.ts'
import type { WorkflowStarter } from '#sdk/host.ts'
import type { GatewayConfig } from './gateway-config.ts'
import type { GroupMapping } from './group-mapping.ts'
import type { Managers } from './managers.ts'
import type { GatewayStorage } from './stored-schema.ts'
import type { UserMapping } from './user-mapping.ts'
import type { VisibleLookups } from './visible-lookups.ts'

/** What the endpoints of one gateway share. */
export interface GatewayParts {
  readonly config: GatewayConfig
  readonly lookups: VisibleLookups
  readonly storage: GatewayStorage
  readonly users: UserMapping
  readonly groups: GroupMapping
  readonly managers: Managers
  readonly workflows: WorkflowStarter
  readonly queue: KeyedQueue
  readonly log: Logger
}
