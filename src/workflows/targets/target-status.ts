/** A failed call of a target. */
export interface TargetFailure {
  readonly time: Date
  readonly code: string
  /** For administrators. Has no secrets. */
  readonly message: string
}

/** The state of a configured target, as far as this process knows it. */
export interface TargetStatus {
  readonly name: string
  readonly className: string
  /** `up` if it answered a lookup just now; `unchecked` if it has no lookups. */
  readonly health: 'up' | 'down' | 'unchecked'
  /** How long the check took. */
  readonly millis?: number
  /** Why the check failed. */
  readonly problem?: string
  /** How many calls of this process failed since `since`, because the target did not answer or refused. */
  readonly failures: number
  readonly since: Date
  readonly lastFailure?: TargetFailure
  /** How many runs of the installation are incidents at this target. */
  readonly incidents: number
}

/** The targets of the configuration, by name, each checked now. Takes a few seconds if one doesn't answer. */
export type ReadTargets = () => Promise<readonly TargetStatus[]>
