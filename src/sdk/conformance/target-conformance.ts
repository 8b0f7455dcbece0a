import assert from 'node:assert/strict'
import { accountCases, spellingCases } from '#sdk/conformance/account-cases.ts'
import { auditCases } from '#sdk/conformance/audit-cases.ts'
import { groupCases } from '#sdk/conformance/group-cases.ts'
import { lookupCases } from '#sdk/conformance/lookup-cases.ts'
import { nestingCases } from '#sdk/conformance/nesting-cases.ts'
import { pageCases } from '#sdk/conformance/page-cases.ts'
import { type TargetNames, targetFixture } from '#sdk/conformance/target-fixture.ts'
import { versionCases } from '#sdk/conformance/version-cases.ts'
import { hasLookups, type Target } from '#sdk/target/target.ts'

export interface TargetConformanceOptions extends Partial<TargetNames> {
  /** The test runner's own: `test` of node:test or of Vitest. */
  readonly test: (name: string, run: () => Promise<void>) => unknown
  /** The target can be asked who it holds; true when absent. */
  readonly lookups?: boolean
  /** `ada` and `ADA` are two users to the system behind the target; false when absent. */
  readonly exactLogins?: boolean
  /** A user is found by the login's own letters alone, though none is made whose login differs in letter case only. */
  readonly exactLookups?: boolean
}

export interface OpenedTarget {
  readonly target: Target
  close(): Promise<void>
}

/**
 * What every target must do, whatever it is made of. Each case opens a target of its own, which must be empty: no
 * users, and none of the groups holding anyone.
 */
export function targetConformance(
  name: string,
  open: () => Promise<OpenedTarget>,
  options: TargetConformanceOptions,
): void {
  const {
    test,
    lookups = true,
    exactLogins = false,
    exactLookups = exactLogins,
    attributes = ['mail', 'givenName', 'phone'],
    groups = ['group1', 'group2', 'group3'],
  } = options
  const cases = [
    ...accountCases,
    ...(exactLookups ? [] : spellingCases),
    ...versionCases,
    ...groupCases,
    ...nestingCases,
    ...auditCases,
    ...(lookups ? [...lookupCases, ...pageCases] : []),
  ]
  for (const { name: title, run } of cases) {
    test(`${name}: ${title}`, async () => {
      const { target, close } = await open()
      try {
        await run(targetFixture(target, { attributes, groups }, exactLogins))
      } finally {
        await close()
      }
    })
  }
  test(`${name}: look-ups are ${lookups ? '' : 'not '}there`, async () => {
    const { target, close } = await open()
    try {
      assert.equal(hasLookups(target), lookups)
    } finally {
      await close()
    }
  })
}
