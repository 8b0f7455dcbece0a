import type { WorkflowListItem, WorkflowRequest } from '#contract/main.ts'

/** Something that somebody is about to ask for. */
export interface CartLine {
  /** Of this line alone: sent again, it starts nothing twice. */
  readonly uuid: string
  readonly key: string
  readonly name: string
  readonly label: string
  readonly description: string
  readonly encryptedParams?: string
  readonly forOthers: boolean
  readonly subjects: readonly string[]
  readonly reason: string
  /** The decision about the first approval, by whoever asks; empty: none. */
  readonly decision: '' | 'approve' | 'deny'
  readonly decisionReason: string
}

/** The most lines that can be sent at once. */
export const maxLines = 100

/** Rows of a dynamic workflow have one name, and differ in what they are about. */
export const rowKey = ({ name, label, filterAnnotations }: WorkflowListItem): string =>
  JSON.stringify([name, label, filterAnnotations])

export function newLine(row: WorkflowListItem, uuid: string): CartLine {
  const { name, label, description, encryptedParams } = row
  return {
    uuid,
    key: rowKey(row),
    name,
    label,
    description,
    ...(encryptedParams === undefined ? {} : { encryptedParams }),
    forOthers: false,
    subjects: [],
    reason: '',
    decision: '',
    decisionReason: '',
  }
}

/** Unlike `crypto.randomUUID`, also where there is no TLS. */
export const newUuid = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')

export type LineProblem = 'cart.reasonRequired' | 'cart.subjectsRequired' | 'cart.decisionReasonRequired'

/** What is missing before the line can be sent. */
export function problemsOf(line: CartLine, requireReasons: boolean): readonly LineProblem[] {
  return [
    ...(requireReasons && line.reason.trim() === '' ? (['cart.reasonRequired'] as const) : []),
    ...(line.forOthers && line.subjects.length === 0 ? (['cart.subjectsRequired'] as const) : []),
    ...(line.decision !== '' && line.decisionReason.trim() === '' ? (['cart.decisionReasonRequired'] as const) : []),
  ]
}

export function requestOf(line: CartLine): WorkflowRequest {
  const { uuid, name, reason, encryptedParams, forOthers, subjects, decision, decisionReason } = line
  return {
    uuid,
    name,
    reason: reason.trim(),
    ...(encryptedParams === undefined ? {} : { encryptedParams }),
    ...(forOthers ? { subjects } : {}),
    ...(decision === ''
      ? {}
      : { doPreApproval: true, approved: decision === 'approve', approvalReason: decisionReason.trim() }),
  }
}

/** What the API says about a line that was refused, as a message where it is a known text. */
const refusals = {
  'Reason is required': 'cart.reasonRequired',
  'Reason is not in the list': 'cart.reasonNotListed',
  'Not Found': 'cart.gone',
  Unauthorized: 'cart.notAllowed',
  'Unable to submit': 'cart.unable',
  'Approval reason is required': 'cart.decisionReasonRequired',
} as const

export type Refusal = (typeof refusals)[keyof typeof refusals]

export const refusalOf = (text: string): Refusal | undefined =>
  Object.hasOwn(refusals, text) ? refusals[text as keyof typeof refusals] : undefined
