import { inParallel } from '#kernel/in-parallel.ts'
import { targetFixture, userOf } from '#sdk/conformance/target-fixture.ts'
import { hasGroups, hasLookups, type Target } from '#sdk/target/target.ts'
import { type TargetRowName, targetCoverage } from '#testing/hostile/hostile-coverage.ts'
import { type Entry, type Place, type TrialOptions, unstorable } from '#testing/hostile/hostile-entry.ts'
import type { PlainGroup, PlainUser } from '#testing/hostile/hostile-everything.ts'
import type { FilterNames } from '#testing/hostile/hostile-filters.ts'
import type { TargetOperation } from '#testing/hostile/hostile-operations.ts'
import { OperationCount } from '#testing/hostile/operation-count.ts'

export type Stage = ReturnType<typeof hostileStage>

/** The shared parts of a trial: the target by capability, the names of attributes, and how to write an entry. */
export function hostileStage(row: TargetRowName, target: Target, options: TrialOptions) {
  if (!hasLookups(target)) throw new Error('a target without look-ups cannot be asked what it holds')
  const { request } = targetFixture(target, { attributes: ['a', 'b', 'c'], groups: ['a', 'b', 'c'] })
  const { batch = 100, width = 8, pack = 20, mayRefuse = unstorable, groups: given } = options
  const groups = hasGroups(target) ? target : undefined
  const maker = groups ?? options.groupMaker
  const [many, one] = options.attributes
  const attributes: readonly string[] = options.attributes
  const groupAttribute = options.groupAttribute === undefined ? 'description' : (options.groupAttribute ?? undefined)
  const names: FilterNames = {
    many,
    one,
    text: maker === undefined ? undefined : groupAttribute,
    longest: options.longestInFilter ?? Infinity,
  }
  const { bounds } = targetCoverage[row]
  const counter = new OperationCount<TargetOperation>()
  const attributesOf = (entry: Entry) =>
    many === undefined || one === undefined ? {} : { [many]: entry.many, [one]: [entry.one] }

  return {
    target,
    lookups: target,
    groups,
    /** Creates the groups; may be the target itself. */
    maker,
    given,
    names,
    attributes,
    request,
    fixedGroups: options.fixedGroups === true,
    batch,
    width,
    pack,
    /** Small enough that the entries of a round are on several pages. */
    pageSize: Math.ceil(batch * 0.45),
    bounds,
    counter,
    mayRefuse,
    did: counter.did.bind(counter) as typeof counter.did,
    /** Fewer values than promised passed through it. */
    isDue: (operation: TargetOperation, most: number): boolean => counter.count(operation) < most,
    each: (entries: readonly Entry[], work: (entry: Entry, i: number) => Promise<void>) =>
      inParallel(entries, width, work),
    may: (places: readonly Place[], values: readonly string[]): boolean =>
      places.some((place) => values.some((value) => mayRefuse(place, value))),
    describe: (text: string) => (groupAttribute === undefined ? {} : { [groupAttribute]: [text] }),
    asUser: (entry: Entry) => userOf(entry.login, attributesOf(entry), [entry.home.group]),
    expectedUser: (entry: Entry): PlainUser => ({
      userID: entry.login,
      many: many === undefined ? [] : [...entry.many].sort(),
      one: many === undefined ? [] : [entry.one],
      groups: [entry.home.group],
    }),
    expectedGroup: (entry: Entry): PlainGroup => ({
      name: entry.group,
      text: names.text === undefined ? [] : [entry.text],
    }),
  }
}
