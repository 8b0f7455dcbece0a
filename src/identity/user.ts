import type { Attributes } from '#identity/attributes.ts'

/** A user or account as workflows and targets see it. `userID` is the login; groups are names. */
export interface User {
  readonly userID: string
  readonly attributes: Attributes
  readonly groups: readonly string[]
  /** The groups' own ids, in the order of `groups`, if the store read them. */
  readonly groupIds?: readonly string[] | undefined
  /** False if the store knows that none of the groups is a member of another group. */
  readonly groupsAreNested?: boolean | undefined
  /** The store's own identifier, if it has one besides the login. */
  readonly id?: string | undefined
  /** Changes with every change to the user, if the store keeps versions. */
  readonly version?: string | undefined
  readonly created?: Date | undefined
  readonly modified?: Date | undefined
}
