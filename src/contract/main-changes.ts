import type * as schema from './schemas/main-changes.ts'
import type { Wire } from './wire.ts'

/**
 * What approving would do, in order, as far as the preview can say. Steps after one of the kind `unforeseen` may differ, and
 * steps after an `approval` happen only if it is given too. Has no secrets. Times are ISO 8601 on the wire.
 */
export interface ChangePreview<Time = string> {
  readonly steps: readonly PreviewStep<Time>[]
  /** False if more steps follow than are listed. */
  readonly whole: boolean
}

export type PreviewStep<Time = string> =
  | PreviewEntry
  /** Access that expires: a membership, or the user as a whole. */
  | {
      readonly kind: 'end'
      readonly target: string
      readonly of: 'user' | 'group'
      readonly name: string
      readonly expires: Time
    }
  | { readonly kind: 'mail'; readonly recipient: string; readonly subject: string }
  | { readonly kind: 'approval'; readonly label: string }
  | { readonly kind: 'wait'; readonly until: Time }
  /** `apart`: it starts as a request of its own, and the preview does not show what it does. */
  | { readonly kind: 'workflow'; readonly name: string; readonly apart: boolean }
  /** The preview can't show this task. `reason`, for people: why it failed. */
  | { readonly kind: 'unforeseen'; readonly task: string; readonly reason?: string }

/** A user or a group that is created, changed or deleted at a target. */
export interface PreviewEntry {
  readonly kind: 'user' | 'group'
  readonly action: 'create' | 'change' | 'delete'
  readonly target: string
  readonly name: string
  /** The name after the change. */
  readonly newName?: string
  readonly attributes: readonly PreviewAttribute[]
  /** Groups of a user. */
  readonly joins: readonly string[]
  readonly leaves: readonly string[]
  /** There is more than is listed here. */
  readonly cut: boolean
}

/** Values are left out where they are secret. */
export interface PreviewAttribute {
  readonly name: string
  readonly secret: boolean
  readonly before: readonly string[]
  readonly after: readonly string[]
}

type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : never) : never
/** Does not compile if the wire schema differs. */
export const schemaHolds: Same<ChangePreview, Wire<typeof schema.changePreview>> = true
