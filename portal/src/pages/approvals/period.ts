/** A moment as a browser's own field for day and time has it, in the person's time zone. */
export function fieldValue(at: Date): string {
  const local = new Date(at.getTime() - at.getTimezoneOffset() * 60_000)
  return local.toISOString().slice(0, 16)
}

export type PeriodProblem = 'deputies.whoRequired' | 'deputies.timeRequired' | 'deputies.endsBeforeStart'

export interface PeriodDraft {
  readonly deputy: string
  readonly starts: string
  readonly ends: string
}

/** What is wrong with it before it is sent. */
export function periodProblem({ deputy, starts, ends }: PeriodDraft): PeriodProblem | undefined {
  if (deputy === '') return 'deputies.whoRequired'
  const [from, until] = [Date.parse(starts), Date.parse(ends)]
  if (Number.isNaN(from) || Number.isNaN(until)) return 'deputies.timeRequired'
  return until <= from ? 'deputies.endsBeforeStart' : undefined
}
