/** What would be done, in its order. Behind an `unforeseen` step things may come differently. It holds no secrets. */
export interface Foreseen {
  readonly steps: readonly ForeseenStep[]
  /** False where more follows than could be told. */
  readonly whole: boolean
}

export type ForeseenStep =
  | ForeseenEntry
  /** Access that is to end by itself: a membership, or the user as a whole. */
  | {
      readonly kind: 'end'
      readonly target: string
      readonly of: 'user' | 'group'
      readonly name: string
      readonly expires: Date
    }
  | { readonly kind: 'mail'; readonly recipient: string; readonly subject: string }
  /** What follows happens only if this is approved as well. */
  | { readonly kind: 'approval'; readonly label: string }
  | { readonly kind: 'wait'; readonly until: Date }
  /** `apart`: it is started as a request of its own, and what it does is not told. */
  | { readonly kind: 'workflow'; readonly name: string; readonly apart: boolean }
  /** A task of which nobody can say beforehand what it does; `reason`, for people, where it should have been possible. */
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
  /** There is more than is told. */
  readonly cut: boolean
}

/** Values are left out where they are secret. */
export interface ForeseenAttribute {
  readonly name: string
  readonly secret: boolean
  readonly before: readonly string[]
  readonly after: readonly string[]
}
