import type { Attributes } from '#identity/attributes.ts'

/** A group by its present name and the id that it keeps. */
export interface NamedGroup {
  readonly name: string
  readonly id: string
}

/** A group as targets see it. Members are user logins, or ids where the target says so. */
export interface Group {
  readonly id: string
  readonly name: string
  readonly description?: string
  readonly members: readonly string[]
  /** The members' own ids, in the order of `members`, where the store read them along. */
  readonly memberIds?: readonly string[]
  /** The names that people know the members by, in the order of `members`, where they were asked for and read along. */
  readonly memberDisplays?: readonly (string | undefined)[]
  /** The groups that are direct members, where the target nests groups. Read along with `members`. */
  readonly memberGroups?: readonly MemberGroup[]
  readonly attributes?: Attributes
  readonly version?: string
  readonly created?: Date
  readonly modified?: Date
}

export interface MemberGroup extends NamedGroup {
  /** The name that people know it by, where it was asked for and differs from `name`. */
  readonly display?: string
}
