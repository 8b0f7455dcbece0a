import type { Attributes } from '#identity/attributes.ts'

/** A group by its current name and its permanent id. */
export interface NamedGroup {
  readonly name: string
  readonly id: string
}

/** A group as targets see it. Members are logins, or ids if the target says so. */
export interface Group {
  readonly id: string
  readonly name: string
  readonly description?: string | undefined
  readonly members: readonly string[]
  /** The members' own ids, in the order of `members`, if the store read them. */
  readonly memberIds?: readonly string[] | undefined
  /** The members' display names, in the order of `members`, if they were requested and read. */
  readonly memberDisplays?: readonly (string | undefined)[] | undefined
  /** The groups that are direct members, if the target nests groups. Read together with `members`. */
  readonly memberGroups?: readonly MemberGroup[] | undefined
  /**
   * Reads the members in parts, in place of `members`, if the caller accepts parts and the members are many. The parts
   * and `memberGroups` together are what the group contained when it was read, without what was deleted since.
   */
  readonly memberPages?: () => AsyncIterable<MembersPage>
  readonly attributes?: Attributes
  readonly version?: string | undefined
  readonly created?: Date | undefined
  readonly modified?: Date | undefined
}

/** Some members of a group. */
export type MembersPage = Pick<Group, 'members' | 'memberIds' | 'memberDisplays' | 'memberGroups'>

export interface MemberGroup extends NamedGroup {
  /** The display name, if it was requested and differs from `name`. */
  readonly display?: string | undefined
}
