import assert from 'node:assert/strict'
import type { CreateOptions, SyncOptions } from '#identity/account-store.ts'
import { Attributes } from '#identity/attributes.ts'
import type { User } from '#identity/user.ts'
import { silentLogger } from '#kernel/logger.ts'
import type { Target, TargetChange, TargetRequest } from '#sdk/target/target.ts'

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
  /** With all attributes. */
  create(user: User, options?: CreateOptions): Promise<void>
  /** Makes the user equal in all attributes and groups, unless the options say otherwise. */
  sync(user: User, options?: Partial<SyncOptions>): Promise<void>
  remove(user: User, options?: { readonly expectedVersion?: string }): Promise<void>
  /** The user as plain values, in an order that does not depend on the target; undefined if absent. */
  stored(userID: string): Promise<PlainUser | undefined>
  /** Fails if no reported change has these values. */
  assertReported(wanted: Partial<TargetChange>): void
}

interface PlainUser {
  readonly userID: string
  /** In the order of the fixture's attributes. */
  readonly values: readonly (readonly string[])[]
  readonly groups: readonly string[]
}

/** Attributes and groups for the cases. */
export interface TargetNames {
  /** Attributes that the target stores unchanged; the first may have several values. */
  readonly attributes: readonly [string, string, string]
  /** Groups that exist in the target, or are created when a user joins. */
  readonly groups: readonly [string, string, string]
}

/** By name. */
export type TargetCases = Readonly<Record<string, (fixture: TargetFixture) => Promise<void>>>

/** Cases that only run for targets with a capability. */
export function casesFor<T extends Target>(
  what: string,
  has: (target: Target) => target is T,
  cases: Readonly<Record<string, (target: T, fixture: TargetFixture) => Promise<void>>>,
): TargetCases {
  const named = Object.entries(cases).map(([name, run]) => {
    const runFor = async (fixture: TargetFixture) => (has(fixture.target) ? run(fixture.target, fixture) : undefined)
    return [`${what}: ${name}`, runFor] as const
  })
  return Object.fromEntries(named)
}

/** A fixture that records the changes that the target reports. */
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
  return {
    target,
    exactLogins,
    attributes,
    groups,
    changes,
    request,
    create: (user, options) => target.createUser(user, attributes, request, options),
    sync: (user, options) => target.syncUser(user, syncOptions(attributes, options), request),
    remove: (user, options) => target.deleteUser(user, request, options),
    async stored(userID) {
      const user = await target.findUser(userID, attributes, request)
      if (user === undefined) return undefined
      const values = attributes.map((name) => [...user.attributes.values(name)].sort())
      return { userID: user.userID, values, groups: [...user.groups].sort() }
    },
    assertReported(wanted) {
      const isReported = changes.some((change) =>
        Object.entries(wanted).every(([field, value]) => change[field as keyof TargetChange] === value),
      )
      assert.ok(isReported, `no audit entry like ${JSON.stringify(wanted)} in ${JSON.stringify(changes)}`)
    },
  }
}

/** A user with these attributes and groups. */
export const userOf = (
  userID: string,
  attributes: Readonly<Record<string, readonly string[]>> = {},
  groups: readonly string[] = [],
): User => ({ userID, attributes: Attributes.from(attributes), groups })

/** Options of a sync that makes these attributes and all groups equal. */
export const syncOptions = (attributes: readonly string[], other: Partial<SyncOptions> = {}): SyncOptions => ({
  addOnly: false,
  keepGroups: false,
  attributes,
  ...other,
})

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
