import type { Clock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'

/** What Gatehouse offers to every module. The host of a slot adds what its modules need; it ends with its configuration. */
export interface ModuleHost {
  /** The name of the YAML object the module belongs to. */
  readonly name: string
  /** Carries the module's class name and where it is configured. */
  readonly log: Logger
  readonly clock: Clock
  /** The text of a JavaScriptMapping object. */
  javaScript(name: string): string | undefined
}
