import type { Clock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'

/**
 * What Gatehouse offers to every module. The host of a slot adds what its modules need; it ends with its
 * configuration.
 */
export interface ModuleHost {
  /** The name of the module's YAML object. */
  readonly name: string
  /** Adds the module's class name and place to each line. */
  readonly log: Logger
  readonly clock: Clock
  /** The text of a JavaScript or JavaScriptMapping object. */
  javaScript(name: string): string | undefined
}

/** The host of one module: the name of its YAML object, its class and where it is configured. */
export type HostFor<Host> = (name: string, className: string, at: string) => Host
