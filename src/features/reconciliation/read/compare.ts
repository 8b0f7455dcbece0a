import type { Policy } from '#features/reconciliation/plan/decide.ts'
import type { ComparedCounts, ComparisonPart, Difference } from '#features/reconciliation/plan/difference.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { compareAlone } from './compare-one.ts'
import { ComparisonFile } from './comparison-file.ts'
import { peoplePart, sparesPart } from './decided-rows.ts'
import { canMerge, compareSorted } from './merge.ts'
import { withMissingGroups } from './missing-groups.ts'
import { pageSize, targetPage } from './people-source.ts'
import { readPeople } from './read-people.ts'
import { type ComparedSystems, policyOf } from './systems.ts'
import { readWhole } from './whole-pages.ts'

/** How often a comparison reports that it is still at work. */
const reportMillis = 1000
const width = 8
/** How many differences are confirmed one by one after a side changed while it was read. */
const mostConfirmed = 1000

const none: ComparedCounts = { source: 0, target: 0, agree: 0 }

/** Where a comparison is: people come first, then accounts that no person has, each in the order of their keys. */
interface Place {
  readonly stage: 'people' | 'accounts'
  readonly after: string
}

/**
 * Compares both sides in bounded memory, and continues behind `resumeAt`, the place where an earlier part ended. If both
 * can sort by the login that connects them, they are read side by side. Otherwise both are read to their end before
 * anything is said of anyone; meanwhile parts are empty. Throws TARGET_UNREACHABLE if a side doesn't answer, and
 * TARGET_FAILED if its answers contradict each other.
 */
export async function* compare(systems: ComparedSystems, resumeAt?: string): AsyncGenerator<ComparisonPart> {
  const groups = new Map<string, Promise<boolean>>()
  const parts = canMerge(systems) ? compareSorted(systems, resumeAt) : compareRead(systems, resumeAt)
  for await (const part of parts) {
    const noted = inParallel(part.differences, width, (one) => withMissingGroups(systems.target, one, groups))
    yield { ...part, differences: await noted }
  }
}

/** Reads both sides to their end first. */
async function* compareRead(systems: ComparedSystems, resumeAt?: string): AsyncGenerator<ComparisonPart> {
  const { config, target, folder, signal } = systems
  const start = readPlace(resumeAt)
  const file = new ComparisonFile(config.correlation, !target.userIdIsLogin, folder)
  try {
    const preparation = prepare(file, systems)
    let reported = performance.now()
    let step = await preparation.next()
    for (; step.done !== true; step = await preparation.next()) {
      signal?.throwIfAborted()
      if (performance.now() - reported < reportMillis) continue
      reported = performance.now()
      yield { differences: [], counts: none, resumeAt: placeText(start) }
    }
    const doubts = new Doubts(systems, step.value)
    const policy = policyOf(systems)
    const parts = function* (): Generator<ComparisonPart> {
      if (start.stage === 'people') yield* comparePeople(file, policy, start.after)
      yield* compareSpares(file, policy, start.stage === 'people' ? '' : start.after)
    }
    for (const part of parts()) {
      signal?.throwIfAborted()
      yield await doubts.without(part)
    }
  } finally {
    file.close()
  }
}

/** Which sides changed while they were read. */
interface Changed {
  readonly source: boolean
  readonly target: boolean
}

async function* prepare(file: ComparisonFile, systems: ComparedSystems): AsyncGenerator<void, Changed> {
  const { config, target, mapping } = systems
  const source = yield* readPeople(file, systems)
  const isOther = yield* readWhole({
    what: `target "${config.target}"`,
    read: (after) => targetPage(target, after, { attributes: mapping.accountAttributes }),
    count: async () => (await target.searchUsers({ offset: 0, limit: 1, attributes: [] })).total,
    add: (users) => file.addAccounts(users.map((user) => mapping.account(user))),
  })
  yield* file.correlate(systems)
  return { source, target: isOther }
}

/** Looks again for people and accounts that may have been overlooked, since a side changed while it was read. */
class Doubts {
  readonly #systems: ComparedSystems
  readonly #changed: Changed
  #confirmed = 0

  constructor(systems: ComparedSystems, changed: Changed) {
    this.#systems = systems
    this.#changed = changed
  }

  async without(part: ComparisonPart): Promise<ComparisonPart> {
    const { differences, counts } = part
    const confirmed = await inParallel(differences, width, async (difference): Promise<readonly Difference[]> => {
      const { kind, source, target } = difference
      const isDoubtful = (kind === 'missing' && this.#changed.target) || (kind === 'extra' && this.#changed.source)
      if (!isDoubtful) return [difference]
      if (this.#confirmed++ >= mostConfirmed) return [onlyReported(difference)]
      const present = await compareAlone(this.#systems, { source, target })
      return present === undefined ? [] : [present.difference]
    })
    const left = confirmed.flat()
    return { ...part, differences: left, counts: { ...counts, agree: counts.agree + differences.length - left.length } }
  }
}

function onlyReported(difference: Difference): Difference {
  const why = 'Nothing is done, since the systems changed while they were read: compare again.'
  return { ...difference, action: 'report', reason: `${difference.reason} ${why}` }
}

function* comparePeople(file: ComparisonFile, policy: Policy, start: string): Generator<ComparisonPart> {
  let after = start
  for (;;) {
    const rows = file.people(after, pageSize)
    const last = rows.at(-1)
    if (last === undefined) return
    after = last.key
    yield { ...peoplePart(rows, policy), resumeAt: placeText({ stage: 'people', after }) }
  }
}

function* compareSpares(file: ComparisonFile, policy: Policy, start: string): Generator<ComparisonPart> {
  const unmapped = file.unmapped()
  let after = start
  for (;;) {
    const rows = file.spares(after, pageSize)
    const last = rows.at(-1)
    if (last === undefined) return
    after = last.key
    yield { ...sparesPart(rows, policy, unmapped), resumeAt: placeText({ stage: 'accounts', after }) }
  }
}

const placeText = (place: Place): string => JSON.stringify(place)

/** What no part returned starts from the beginning. */
function readPlace(text: string | undefined): Place {
  const place = text === undefined ? undefined : (JSON.parse(text) as Partial<Place>)
  return { stage: place?.stage === 'accounts' ? 'accounts' : 'people', after: place?.after ?? '' }
}
