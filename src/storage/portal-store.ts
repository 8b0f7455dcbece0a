import type { UserRef } from '#identity/identity.ts'

export type MarkList = 'favourite' | 'recent'

export interface PortalMark {
  readonly kind: string
  readonly name: string
  readonly at: Date
}

export interface PortalOffer {
  /** The hash of what the login holds. */
  readonly reference: string
  readonly workflow: string
  readonly parameters: Readonly<Record<string, string>>
}

/** What the portal remembers of users. */
export interface PortalStore {
  /** Earliest first. */
  marks(user: UserRef, list: MarkList): Promise<readonly PortalMark[]>
  /** What is marked already keeps its time. False, and nothing is written, when the list has `limit` others. */
  mark(user: UserRef, list: MarkList, mark: Omit<PortalMark, 'at'>, limit: number): Promise<boolean>
  /** What is marked already gets the present time; of the list, the latest `limit` stay. */
  note(user: UserRef, list: MarkList, mark: Omit<PortalMark, 'at'>, limit: number): Promise<void>
  unmark(user: UserRef, list: MarkList, mark: Omit<PortalMark, 'at'>): Promise<void>
  /**
   * Valid for that long, by the clock of the database. Removes expired offers of all users, and all but the latest `keep`
   * of this user's.
   */
  offer(user: UserRef, offers: readonly PortalOffer[], forMillis: number, keep: number): Promise<void>
  /** Undefined when there is none of this reference, it is another's, or it has expired. */
  offered(user: UserRef, reference: string): Promise<PortalOffer | undefined>
}
