import type * as schema from './schemas/main-changes.ts'
import type { Wire } from './wire.ts'

/**
 * What approving would do, in order, as far as that can be foreseen. Steps after one of the kind `unforeseen` may differ, and
 * steps after an `approval` happen only if it is given too. Has no secrets. Moments are ISO 8601 on the wire.
 */
export interface ForeseenChanges<Moment = string> {
  readonly steps: readonly ForeseenStep<Moment>[]
  /** False if more steps follow than are listed. */
  readonly whole: boolean
}

export type ForeseenStep<Moment = string> =
  | ForeseenEntry
  /** Access that ends by itself: a membership, or the user as a whole. */
  | {
      readonly kind: 'end'
      readonly target: string
      readonly of: 'user' | 'group'
      readonly name: string
      readonly expires: Moment
    }
  | { readonly kind: 'mail'; readonly recipient: string; readonly subject: string }
  | { readonly kind: 'approval'; readonly label: string }
  | { readonly kind: 'wait'; readonly until: Moment }
  /** `apart`: it is started as a request of its own, and what it does is not told. */
  | { readonly kind: 'workflow'; readonly name: string; readonly apart: boolean }
  /** `reason`, for people, where it should have been possible. */
  | { readonly kind: 'unforeseen'; readonly task: string; readonly reason?: string }

/** A user or a group that comes, changes or goes at a target. */
export interface ForeseenEntry {
  readonly kind: 'user' | 'group'
  readonly action: 'create' | 'change' | 'delete'
  readonly target: string
  readonly name: string
  /** Where it is to have another name. */
  readonly newName?: string
  readonly attributes: readonly ForeseenAttribute[]
  /** Groups of a user. */
  readonly joins: readonly string[]
  readonly leaves: readonly string[]
  /** There is more than is listed here. */
  readonly cut: boolean
}

/** Values are left out where they are secret. */
export interface ForeseenAttribute {
  readonly name: string
  readonly secret: boolean
  readonly before: readonly string[]
  readonly after: readonly string[]
}

type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : never) : never
/** The compiler says here where the schema on the wire differs. */
export const schemaHolds: Same<ForeseenChanges, Wire<typeof schema.foreseenChanges>> = true
