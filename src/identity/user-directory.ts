import type { AccountLookups, AccountWrites, GroupWrites } from '#identity/account-store.ts'

export interface UserDirectoryOptions {
  /** The name space. Directories with different names in one database are separate. */
  readonly name: string
  /** `postgres://…` or `sqlite:<file>`. Default: Gatehouse's own database. */
  readonly url?: string
}

/** Limits of one user or group. Beyond them, and for a NUL character or half a surrogate pair, writes throw BAD_REQUEST. */
export const directoryLimits = {
  /** Bytes of UTF-8 in a login or a group's name, and in an attribute's name. */
  nameBytes: 512,
  /** Bytes of UTF-8 in a value. */
  valueBytes: 64 * 1024,
  valuesPerAttribute: 1000,
  attributes: 1000,
  /** Memberships of a user, and members added or removed in one call. */
  memberships: 10_000,
  /** The maximum number of items in a page. */
  page: 1000,
} as const

/**
 * Users, groups and memberships in a database. Logins and group names are unique without regard to letter case, and
 * keep the case in which they were written. The store creates ids and never reuses them. Every method is one
 * transaction, and reports its changes with it. A spread has every method.
 *
 * Searches are in the order of creation. Filters work on any attribute, and an index serves equality and prefixes. In
 * filters, `id` and `userID` (of users) or `name` (of groups) mean the entry itself; filters do not see a stored attribute
 * of that name. Members of groups are logins; searches leave them out.
 *
 * A create or a sync creates the groups of the user that do not exist. A sync throws NOT_FOUND for an unknown user, and
 * keeps the version if the user already is as requested. A delete reports one change for the entry and all of its
 * attributes and memberships.
 *
 * If the database does not answer, every method throws TARGET_UNREACHABLE and changes nothing.
 */
export interface UserDirectory extends Required<AccountLookups>, AccountWrites, Required<GroupWrites> {
  close(): Promise<void>
}
