import type { CorrelationRule } from '#config/configuration/configuration.ts'
import { decideExtra, decidePerson, type Policy } from '#features/reconciliation/plan/decide.ts'
import type { ComparedCounts, ComparisonPart, Difference } from '#features/reconciliation/plan/difference.ts'
import { ComparisonFile } from './comparison-file.ts'
import { pageSize, targetPage } from './people-source.ts'
import { readPeople } from './read-people.ts'
import type { ComparedSystems } from './systems.ts'
import { readWhole } from './whole-pages.ts'

/** How often a comparison reports that it is still at work. */
const reportMillis = 1000

const none: ComparedCounts = { source: 0, target: 0, agree: 0 }

/** Where a comparison is: people come first, then accounts that no person has, each in the order of their keys. */
interface Place {
  readonly stage: 'people' | 'accounts'
  readonly after: string
}

/**
 * Compares both sides in bounded memory, and continues behind `resumeAt`, the place where an earlier part ended. Both
 * sides are read to their end before anything is said of anyone; meanwhile parts are empty. Throws TARGET_UNREACHABLE if a
 * side doesn't answer, and TARGET_FAILED if its answers contradict each other.
 */
export async function* compare(systems: ComparedSystems, resumeAt?: string): AsyncGenerator<ComparisonPart> {
  const { config, target, folder, signal } = systems
  const start = readPlace(resumeAt)
  const file = new ComparisonFile(config.correlation.map(ruleName), !target.userIdIsLogin, folder)
  try {
    let reported = performance.now()
    for await (const _ of prepare(file, systems)) {
      signal?.throwIfAborted()
      if (performance.now() - reported < reportMillis) continue
      reported = performance.now()
      yield { differences: [], counts: none, resumeAt: JSON.stringify(start) }
    }
    const policy = policyOf(systems)
    if (start.stage === 'people') yield* comparePeople(file, policy, start.after, signal)
    yield* compareSpares(file, policy, start.stage === 'people' ? '' : start.after, signal)
  } finally {
    file.close()
  }
}

async function* prepare(file: ComparisonFile, systems: ComparedSystems): AsyncGenerator<void> {
  const { config, target, mapping } = systems
  yield* readPeople(file, systems)
  yield* readWhole({
    what: `target "${config.target}"`,
    read: (after) => targetPage(target, after, { attributes: mapping.accountAttributes }),
    count: async () => (await target.searchUsers({ offset: 0, limit: 1, attributes: [] })).total,
    add: (users) => file.addAccounts(users.map((user) => mapping.account(user))),
  })
  yield* file.correlate(systems)
}

function* comparePeople(
  file: ComparisonFile,
  policy: Policy,
  start: string,
  signal: AbortSignal | undefined,
): Generator<ComparisonPart> {
  let after = start
  for (;;) {
    signal?.throwIfAborted()
    const rows = file.people(after, pageSize)
    const last = rows.at(-1)
    if (last === undefined) return
    const compared = rows.filter(({ isCompared }) => isCompared)
    const differences = compared.flatMap(({ key, person, match }) => decidePerson(key, person, match, policy) ?? [])
    const target = compared.filter(({ match }) => match.kind === 'account').length
    const counts = { source: compared.length, target, agree: compared.length - differences.length }
    after = last.key
    yield part(differences, counts, { stage: 'people', after })
  }
}

function* compareSpares(
  file: ComparisonFile,
  policy: Policy,
  start: string,
  signal: AbortSignal | undefined,
): Generator<ComparisonPart> {
  const unmapped = file.unmapped()
  let after = start
  for (;;) {
    signal?.throwIfAborted()
    const rows = file.spares(after, pageSize)
    const last = rows.at(-1)
    if (last === undefined) return
    const spare = rows.filter(({ isInvolved }) => !isInvolved)
    const differences = spare.flatMap(({ key, account }) => decideExtra(key, account, policy, unmapped) ?? [])
    const counts = { source: 0, target: rows.length, agree: spare.length - differences.length }
    after = last.key
    yield part(differences, counts, { stage: 'accounts', after })
  }
}

const part = (differences: readonly Difference[], counts: ComparedCounts, place: Place): ComparisonPart => ({
  differences,
  counts,
  resumeAt: JSON.stringify(place),
})

/** What no part returned starts from the beginning. */
function readPlace(text: string | undefined): Place {
  const place = text === undefined ? undefined : (JSON.parse(text) as Partial<Place>)
  return { stage: place?.stage === 'accounts' ? 'accounts' : 'people', after: place?.after ?? '' }
}

/** What plans call a rule. */
export const ruleName = (rule: CorrelationRule): string => (rule.kind === 'login' ? 'login' : rule.target)

export const policyOf = ({ config, target }: ComparedSystems): Policy => ({
  missing: config.missing,
  different: config.different,
  extra: config.extra,
  ambiguous: config.ambiguous,
  renamesUsers: target.renamesUsers === true,
})
