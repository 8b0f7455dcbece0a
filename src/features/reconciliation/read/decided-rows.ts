import { decideExtra, decidePerson, type Policy } from '#features/reconciliation/plan/decide.ts'
import type { ComparisonPart } from '#features/reconciliation/plan/difference.ts'
import type { PersonRow, SpareRow } from './comparison-file.ts'

type Decided = Omit<ComparisonPart, 'resumeAt'>

/** People whose account is out of scope don't count. */
export function peoplePart(rows: readonly PersonRow[], policy: Policy): Decided {
  const compared = rows.filter(({ isCompared }) => isCompared)
  const differences = compared.flatMap(({ key, person, match }) => decidePerson(key, person, match, policy) ?? [])
  const target = compared.filter(({ match }) => match.kind === 'account').length
  return { differences, counts: { source: compared.length, target, agree: compared.length - differences.length } }
}

/** `unmapped`: how many people could not be mapped, of whom one may have such an account. */
export function sparesPart(rows: readonly SpareRow[], policy: Policy, unmapped: number): Decided {
  const spare = rows.filter(({ isInvolved }) => !isInvolved)
  const differences = spare.flatMap(({ key, account }) => decideExtra(key, account, policy, unmapped) ?? [])
  return { differences, counts: { source: 0, target: rows.length, agree: spare.length - differences.length } }
}
