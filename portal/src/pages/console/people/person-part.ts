import type { ConsolePersonDetails } from '#features/portal/contract/console-people.ts'

/** What a part of a user's page needs to know. */
export interface PersonPart {
  readonly person: ConsolePersonDetails
  /** The caller is an operator, and this is another user. */
  readonly mayChange: boolean
}

export const nameOf = ({ displayName, login }: ConsolePersonDetails): string => displayName ?? login
