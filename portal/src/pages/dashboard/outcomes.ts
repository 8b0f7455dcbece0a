import type {
  ApprovalCounts,
  RequestCounts,
  ScimCallCounts,
  TokenCounts,
} from '#features/portal/contract/main-admin.ts'
import type { RequestState } from '#features/portal/contract/main-requests.ts'
import type { MessageKey } from '../../app/messages.ts'

export type RunOutcome = 'done' | 'open' | 'denied' | 'ended' | 'bad'
export type CallOutcome = keyof ScimCallCounts
export type ApprovalEvent = Exclude<keyof ApprovalCounts, 'decisionMillis'>

/** The states that each outcome counts. */
export const outcomeStates: Readonly<Record<RunOutcome, readonly RequestState[]>> = {
  done: ['completed'],
  open: ['ready', 'running', 'waiting'],
  denied: ['denied'],
  ended: ['cancelled', 'expired'],
  bad: ['failed', 'incident'],
}

export function runOutcomes(counts: RequestCounts): Readonly<Record<RunOutcome, number>> {
  const sum = (outcome: RunOutcome) => outcomeStates[outcome].reduce((total, state) => total + counts[state], 0)
  return { done: sum('done'), open: sum('open'), denied: sum('denied'), ended: sum('ended'), bad: sum('bad') }
}

export const approvalEvents = ({ opened, approved, denied, escalated }: ApprovalCounts) => ({
  opened,
  approved,
  denied,
  escalated,
})

/** A name and a color for each series of a chart. */
export interface Series<K extends string> {
  readonly name: K
  readonly label: MessageKey
  readonly color: string
}

export const runSeries: readonly Series<RunOutcome>[] = [
  { name: 'done', label: 'dashboard.done', color: 'teal.6' },
  { name: 'open', label: 'dashboard.open', color: 'blue.5' },
  { name: 'denied', label: 'dashboard.denied', color: 'orange.6' },
  { name: 'ended', label: 'dashboard.ended', color: 'gray.5' },
  { name: 'bad', label: 'dashboard.bad', color: 'red.6' },
]

export const approvalSeries: readonly Series<ApprovalEvent>[] = [
  { name: 'opened', label: 'dashboard.opened', color: 'blue.5' },
  { name: 'approved', label: 'dashboard.approved', color: 'teal.6' },
  { name: 'denied', label: 'dashboard.denied', color: 'red.6' },
  { name: 'escalated', label: 'dashboard.escalated', color: 'yellow.6' },
]

export const tokenSeries: readonly Series<keyof TokenCounts>[] = [
  { name: 'issued', label: 'dashboard.issued', color: 'teal.6' },
  { name: 'refused', label: 'dashboard.tokensRefused', color: 'red.6' },
]

export const callSeries: readonly Series<CallOutcome>[] = [
  { name: 'answered', label: 'dashboard.ok', color: 'teal.6' },
  { name: 'refused', label: 'dashboard.refused', color: 'yellow.6' },
  { name: 'failed', label: 'dashboard.broken', color: 'red.6' },
]

/** The total of each. */
export const totals = <K extends string>(
  points: readonly Readonly<Record<K, number>>[],
  series: readonly Series<K>[],
): readonly number[] => series.map(({ name }) => points.reduce((sum, point) => sum + point[name], 0))
