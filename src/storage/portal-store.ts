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

/** What the portal remembers of people. Logins are compared without regard to letter case. */
export interface PortalStore {
  /** Earliest first. */
  marks(login: string, list: MarkList): Promise<readonly PortalMark[]>
  /** What is marked already keeps its time. False, and nothing is written, when the list has `limit` others. */
  mark(login: string, list: MarkList, mark: Omit<PortalMark, 'at'>, limit: number): Promise<boolean>
  /** What is marked already gets the present time; of the list, the latest `limit` stay. */
  note(login: string, list: MarkList, mark: Omit<PortalMark, 'at'>, limit: number): Promise<void>
  unmark(login: string, list: MarkList, mark: Omit<PortalMark, 'at'>): Promise<void>
  /**
   * For that long, by the clock of the database. Those that have expired, of anybody, are removed, and of the login's
   * others all but the latest `keep`.
   */
  offer(login: string, offers: readonly PortalOffer[], forMillis: number, keep: number): Promise<void>
  /** Undefined when there is none of this reference, it is another's, or it has expired. */
  offered(login: string, reference: string): Promise<PortalOffer | undefined>
}
