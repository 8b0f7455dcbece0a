import { Attributes } from '#identity/attributes.ts'
import type { User } from '#identity/user.ts'
import { silentLogger } from '#kernel/logger.ts'
import type { SyncOptions, Target, TargetChange, TargetRequest } from '#sdk/target/target.ts'

/** What a conformance case works with: an empty target, and the names it may use there. */
export interface TargetFixture {
  readonly target: Target
  /** `ada` and `ADA` are two users in the system of the target. */
  readonly exactLogins: boolean
  readonly attributes: TargetNames['attributes']
  readonly groups: TargetNames['groups']
  /** Every change reported so far. */
  readonly changes: TargetChange[]
  readonly request: TargetRequest
}

export interface TargetNames {
  /** Attributes that the target stores unchanged; the first may have several values. */
  readonly attributes: readonly [string, string, string]
  /** Groups that exist in the target, or are created when a user joins. */
  readonly groups: readonly [string, string, string]
}

export interface TargetCase {
  readonly name: string
  run(fixture: TargetFixture): Promise<void>
}

export function targetFixture(target: Target, { attributes, groups }: TargetNames, exactLogins = false): TargetFixture {
  const changes: TargetChange[] = []
  const request: TargetRequest = {
    workflow: { id: 'conformance', name: 'conformance' },
    idempotencyKey: 'conformance/1',
    requestor: 'conformance',
    params: {},
    log: silentLogger,
    audit: (change) => void changes.push(change),
  }
  return { target, exactLogins, attributes, groups, changes, request }
}

export const userOf = (
  userID: string,
  attributes: Readonly<Record<string, readonly string[]>> = {},
  groups: readonly string[] = [],
): User => ({ userID, attributes: Attributes.from(attributes), groups })

export const syncOptions = (attributes: readonly string[], other: Partial<SyncOptions> = {}): SyncOptions => ({
  addOnly: false,
  keepGroups: false,
  attributes,
  ...other,
})

/** The user as plain values, in an order that does not depend on the target; undefined if absent. */
export async function stored({ target, attributes, request }: TargetFixture, userID: string) {
  const user = await target.findUser(userID, attributes, request)
  if (user === undefined) return undefined
  const values = attributes.map((name) => [...user.attributes.values(name)].sort())
  return { userID: user.userID, values, groups: [...user.groups].sort() }
}

/** Texts that break code which joins strings. */
export const hostileTexts = [
  `O'Brien "the \\ one"`,
  "x'; DROP TABLE users; --",
  '*)(userID=*))(|(userID=*',
  '100%_[a-z]',
  '__proto__',
  'constructor',
  '$key$ ${attr} #[NAME]',
  '<a href="#">&amp;</a>',
  'Ünïcødé 日本語 🎉',
  'two\nlines',
] as const
