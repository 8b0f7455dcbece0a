import type { WorkflowListItem } from '#features/portal/contract/main.ts'
import type { WorkflowRequest } from '#features/portal/contract/main-requests.ts'
import { type EndOffer, type EndProblem, endProblem, endTime } from './end-field.ts'

/** A workflow that the user is about to request. */
export interface CartLine {
  /** Identifies this line: a repeated one starts nothing twice. */
  readonly uuid: string
  readonly key: string
  readonly name: string
  readonly label: string
  readonly description: string
  readonly encryptedParams?: string
  /** Present if the user can choose the expiry date. */
  readonly accessEnds?: EndOffer
  /** The chosen expiry date, in the field's format; none if absent or empty. */
  readonly ends?: string
  readonly forOthers: boolean
  readonly subjects: readonly string[]
  readonly reason: string
  /** The requester's decision about the first approval; none if empty. */
  readonly decision: '' | 'approve' | 'deny'
  readonly decisionReason: string
}

/** The most lines that can be sent at once. */
export const maxLines = 100

/** Rows of a dynamic workflow share one name, and differ in their parameters. */
export const rowKey = ({ name, label, filterAnnotations }: WorkflowListItem): string =>
  JSON.stringify([name, label, filterAnnotations])

export function newLine(row: WorkflowListItem, uuid: string): CartLine {
  const { name, label, description, encryptedParams, accessEnds } = row
  return {
    uuid,
    key: rowKey(row),
    name,
    label,
    description,
    ...(encryptedParams === undefined ? {} : { encryptedParams }),
    ...(accessEnds === undefined ? {} : { accessEnds }),
    forOthers: false,
    subjects: [],
    reason: '',
    decision: '',
    decisionReason: '',
  }
}

/** Unlike `crypto.randomUUID`, also works without TLS. */
export const newUuid = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')

export type LineProblem = 'cart.reasonRequired' | 'cart.subjectsRequired' | 'cart.decisionReasonRequired' | EndProblem

interface RequiredReasons {
  /** Of the request. */
  readonly ofRequest: boolean
  /** Of a decision that comes with it. */
  readonly ofDecision: boolean
}

/** Missing and wrong values of the line. `current` is when the access ends that the user has. */
export function problemsOf(
  line: CartLine,
  reasons: RequiredReasons,
  now: number,
  current?: number | undefined,
): readonly LineProblem[] {
  const end = line.accessEnds && endProblem(line.ends ?? '', line.accessEnds, now, current)
  return [
    ...(reasons.ofRequest && line.reason.trim() === '' ? (['cart.reasonRequired'] as const) : []),
    ...(line.forOthers && line.subjects.length === 0 ? (['cart.subjectsRequired'] as const) : []),
    ...(end === undefined ? [] : [end]),
    ...(reasons.ofDecision && line.decision !== '' && line.decisionReason.trim() === ''
      ? (['cart.decisionReasonRequired'] as const)
      : []),
  ]
}

export function requestOf(line: CartLine): WorkflowRequest {
  const { uuid, name, reason, encryptedParams, forOthers, subjects, decision, decisionReason } = line
  const expires = line.accessEnds && endTime(line.ends ?? '')
  return {
    uuid,
    name,
    reason: reason.trim(),
    ...(encryptedParams === undefined ? {} : { encryptedParams }),
    ...(expires === undefined ? {} : { expires: expires.toISOString() }),
    ...(forOthers ? { subjects } : {}),
    ...(decision === ''
      ? {}
      : { doPreApproval: true, approved: decision === 'approve', approvalReason: decisionReason.trim() }),
  }
}

/** The API's texts for a rejected line, as message keys. */
const refusals = {
  'Reason is required': 'cart.reasonRequired',
  'Reason is not in the list': 'cart.reasonNotListed',
  'Not Found': 'cart.gone',
  Unauthorized: 'cart.notAllowed',
  'Unable to submit': 'cart.unable',
  'Approval reason is required': 'cart.decisionReasonRequired',
  'End date is required': 'cart.endRequired',
  'End date is not a date or time': 'cart.endRequired',
  'End date is not in the future': 'cart.endNotAhead',
  'End date is later than allowed': 'cart.endTooLate',
  'End date cannot be chosen here': 'cart.gone',
} as const

export type Refusal = (typeof refusals)[keyof typeof refusals] | 'cart.endNotLater'

/** "You have this until 2030-01-02T00:00:00.000Z; choose a later time": the line shows the time. */
const notLater = /^You have this until \S+; choose a later time$/

/** A line without a field for the expiry date was added before there was one to choose. */
export function refusalOf(text: string, line: Pick<CartLine, 'accessEnds'>): Refusal | undefined {
  if (notLater.test(text)) return 'cart.endNotLater'
  if (!Object.hasOwn(refusals, text)) return undefined
  const refusal = refusals[text as keyof typeof refusals]
  return refusal === 'cart.endRequired' && line.accessEnds === undefined ? 'cart.gone' : refusal
}
