export type PeriodProblem = 'deputies.whoRequired' | 'deputies.timeRequired' | 'deputies.endsBeforeStart'

export interface PeriodDraft {
  readonly deputy: string
  readonly starts: string
  readonly ends: string
}

/** The problem of the period before it is sent. */
export function periodProblem({ deputy, starts, ends }: PeriodDraft): PeriodProblem | undefined {
  if (deputy === '') return 'deputies.whoRequired'
  const [from, until] = [Date.parse(starts), Date.parse(ends)]
  if (Number.isNaN(from) || Number.isNaN(until)) return 'deputies.timeRequired'
  return until <= from ? 'deputies.endsBeforeStart' : undefined
}
