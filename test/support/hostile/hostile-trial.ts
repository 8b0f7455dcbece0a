import { expect } from 'vitest'
import { userOf } from '#sdk/conformance/target-fixture.ts'
import type { Target } from '#sdk/target/target.ts'
import { expectTargetCovered, type TargetRowName } from '#testing/hostile/hostile-coverage.ts'
import { type Entry, entryOf, type TrialOptions } from '#testing/hostile/hostile-entry.ts'
import { everythingIn } from '#testing/hostile/hostile-everything.ts'
import { areFound, areNoPositions, arePaged, areSearched, type Everything } from '#testing/hostile/hostile-lookups.ts'
import { hostileStage, type Stage } from '#testing/hostile/hostile-stage.ts'
import { hostileValues } from '#testing/hostile/hostile-values.ts'
import { change, come, go, nest } from '#testing/hostile/hostile-writes.ts'
import { hostileSeed, withSeed } from '#testing/hostile/sample.ts'

const sentinels = ['*', '%', 'bystander', "' or 1=1 --", 'O"Brien\\', '_', '*)(uid=*'] as const

/**
 * Puts each value through every operation of the target, as many as its row of the table has, in rounds that leave no
 * user behind. After each operation values come back unchanged, and all other users are as before, including their
 * versions.
 */
export const hostileTrial = (row: TargetRowName, target: Target, options: TrialOptions): Promise<void> =>
  withSeed(() => trial(row, target, options))

async function trial(row: TargetRowName, target: Target, options: TrialOptions): Promise<void> {
  const stage = hostileStage(row, target, options)
  const { batch, bounds, given, counter, names, lookups } = stage
  await bystandersCome(stage)
  const before = await everythingIn(lookups, names, stage.pageSize)
  expect(before.users).toHaveLength(sentinels.length)
  const values = hostileValues(bounds.values, hostileSeed)
  for (let start = 0; start < values.length; start += batch * bounds.perName) {
    const size = Math.min(batch, Math.ceil((values.length - start) / bounds.perName))
    const entries = Array.from({ length: size }, (_, i) => {
      const at = start + i * bounds.perName
      return entryOf(values.slice(at, at + bounds.perName), given?.[i % given.length])
    })
    await round(stage, entries, before)
  }
  expectTargetCovered(row, target, counter.tally())
}

async function bystandersCome({ target, maker, given, names, attributes, request, describe }: Stage): Promise<void> {
  const { many, one } = names
  for (const name of sentinels) {
    await maker?.createGroup(name, describe(`text of ${name}`), request)
    const values = many === undefined || one === undefined ? {} : { [many]: [name, 'many'], [one]: [name] }
    await target.createUser(userOf(name, values, [given?.[0] ?? name]), attributes, request)
  }
}

async function round(stage: Stage, entries: readonly Entry[], before: Everything): Promise<void> {
  const inAttributes = entries.reduce((sum, { values }) => sum + values.length, 0)
  const page = (users: number, groups: number) =>
    stage.did(
      ['users page', 'users sorted'],
      () => stage.did('groups page', () => arePaged(stage, entries, before), groups),
      users,
    )
  await areNoPositions(stage, entries)
  await come(stage, entries)
  await areFound(stage, entries)
  await areSearched(stage, entries)
  await page(inAttributes, entries.length)
  await change(stage, entries)
  await page(0, 0)
  await nest(stage, entries)
  await go(stage, entries)
  const now = await everythingIn(stage.lookups, stage.names, stage.pageSize)
  expect(now.users).toEqual(before.users)
  if (stage.given === undefined) expect(now.groups).toEqual(before.groups)
}
