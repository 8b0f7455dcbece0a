import * as z from 'zod'
import type { Wire } from '#kernel/wire.ts'
import { changePreview } from '#sdk/contract/preview.ts'
import { attributeValues } from './main.ts'
import { personNames } from './person-names.ts'

/** PUT workflows: a list of these, answered by SubmitResults. */
export interface WorkflowRequest {
  readonly uuid: string
  readonly name: string
  readonly reason?: string
  readonly encryptedParams?: string
  /**
   * The expiry date, if the workflow lets the requester choose one: an ISO 8601 time, or a date, which includes
   * that whole day in UTC. Empty or absent: the access does not expire.
   */
  readonly expires?: string
  /** Logins; the caller if absent. */
  readonly subjects?: readonly string[]
  readonly doPreApproval?: boolean
  /** Also as text. */
  readonly approved?: boolean | 'true' | 'false'
  readonly approvalReason?: string
}

/** What summaries of requests and of approvals say of a run's head. */
const requestHead = z.object({
  requestor: z.string(),
  caller: z.string().describe("Who submitted it in the requester's name; absent where the requester did.").optional(),
  accessEnds: z.string().describe('The expiry date that the requester chose.').optional(),
  reason: z.string().optional(),
})
export type RequestHead = Wire<typeof requestHead>

/** Approvals, requests and deputies of the Main API. */
export const approvalSummary = z.object({
  workflow: z.string().describe('The request.'),
  approval: z.string(),
  label: z.string(),
  user: z.string().describe("The subject's login."),
  displayName: z.string(),
  ...requestHead.shape,
  wfStart: z.int(),
  approvalStart: z.int(),
  wfName: z.string(),
  wfLabel: z.string(),
  wfDescription: z.string(),
  reason: z.string(),
  commentRequired: z.boolean().describe('A decision needs a comment.'),
})
export type ApprovalSummary = Wire<typeof approvalSummary>

/** GET approvals?after=&limit=. */
export const approvalList = z.object({
  approvals: z.array(approvalSummary).describe('Oldest first.'),
  next: z.string().describe('The `after` of the following page; absent on the last one.').optional(),
  names: personNames.optional(),
})
export type ApprovalList = Wire<typeof approvalList>

export const decisionView = z.object({
  at: z.string(),
  by: z.string().optional(),
  onBehalfOf: z.string().optional(),
  comment: z.string().optional(),
})
export type DecisionView = Wire<typeof decisionView>

export const decidedApproval = approvalSummary.extend({
  status: z.enum(['approved', 'denied', 'cancelled']),
  decision: decisionView,
})
export type DecidedApprovalView = Wire<typeof decidedApproval>

/** GET decisions?after=&limit=. */
export const decisionList = z.object({
  decisions: z.array(decidedApproval).describe('Latest first.'),
  next: z.string().optional(),
  names: personNames.optional(),
})
export type DecisionList = Wire<typeof decisionList>

/** An attribute of a request; with the texts of the form, if one was filled in. */
export const requestedValues = attributeValues.extend({
  label: z.string().describe('The label of the field').optional(),
  valueLabels: z.array(z.string()).describe('The values as users chose them').optional(),
})
export type RequestedValues = Wire<typeof requestedValues>

/** A question of an approver to the requester, or the answer. */
export const requestMessage = z.object({
  id: z.string(),
  kind: z.enum(['question', 'answer']),
  by: z.string(),
  at: z.string(),
  text: z.string(),
})
export type RequestMessageView = Wire<typeof requestMessage>

/** GET approvals/{id}?changes=. Has no secrets. */
export const approvalDetails = approvalSummary.extend({
  userObj: z.object({
    userID: z.string(),
    isNew: z
      .boolean()
      .describe('A registration, or a user whom the directory does not have: the values are those of the request.'),
    groups: z.array(z.string()),
    requestReason: z.string(),
    attribs: z.record(z.string(), requestedValues).describe('By label.'),
  }),
  registration: z
    .literal(true)
    .describe(
      'A registration: it creates an account. The values are those submitted, even if another user has the login by now.',
    )
    .optional(),
  existing: z
    .object({
      checked: z.boolean(),
      login: z.boolean(),
      attributes: z.array(z.string()),
    })
    .describe(
      'Of an open registration: whether another user has the login, or the value of a unique attribute, now. Approving it is then refused with 409. `checked` is false where that could not be found out.',
    )
    .optional(),
  requestAttributes: z.record(z.string(), z.string()).describe('By label.'),
  status: z.enum(['open', 'approved', 'denied', 'cancelled']),
  approvers: z.array(z.string()),
  onBehalfOf: z.string().describe('For whom the one who asks would decide.').optional(),
  mayDecide: z.boolean(),
  version: z.int(),
  decision: decisionView.optional(),
  messages: z.array(requestMessage).describe('Questions to the requester and answers, in order.'),
  changes: changePreview
    .describe('Preview of the changes; only with `changes=true`, for approvers, if the portal shows previews.')
    .optional(),
  names: personNames.optional(),
})
export type ApprovalDetails = Wire<typeof approvalDetails>

/** The result by approval; `status` is the status that a single decision would return. */
export const bulkResults = z.object({
  results: z.record(z.string(), z.object({ status: z.int(), text: z.string(), code: z.string().optional() })),
})
export type BulkResults = Wire<typeof bulkResults>

/** `completed`, `denied`, `expired`, `failed` and `cancelled` requests have ended. */
export const runState = z.enum([
  'ready',
  'running',
  'waiting',
  'incident',
  'completed',
  'denied',
  'expired',
  'failed',
  'cancelled',
])
export type RequestState = Wire<typeof runState>

export const cancellation = z
  .object({ by: z.string(), reason: z.string().optional() })
  .describe('Who requested the cancellation, and why.')

export const accessNow = z
  .object({
    state: z
      .enum(['active', 'removing', 'notRemoved', 'ended'])
      .describe(
        '`removing` once it has expired or was given back, until it is gone; `notRemoved` if the run that removes it failed.',
      ),
    expires: z
      .string()
      .describe('When the first part of it expires; when all of it did, or would have, once it ended.'),
    ended: z.string().optional(),
    givenBack: z.literal(true).describe('It was ended before its expiry.').optional(),
  })
  .describe('What the access with an expiry date is now that the request granted or extended. Absent if none is known.')
export type AccessNowView = Wire<typeof accessNow>

export const requestSummary = z.object({
  id: z.string(),
  name: z.string(),
  label: z.string(),
  state: runState,
  subject: z.string(),
  ...requestHead.shape,
  access: accessNow.optional(),
  created: z.string(),
  updated: z.string(),
  ended: z.string().optional(),
  deadline: z.string().optional(),
  cancel: cancellation.optional(),
})
export type RequestSummary = Wire<typeof requestSummary>

/**
 * GET requests?state=&about=mine|me&after=&limit=: what the caller requested, or what others requested for the
 * caller.
 */
export const requestList = z.object({
  requests: z.array(requestSummary).describe('Latest first.'),
  next: z.string().optional(),
  names: personNames.optional(),
})
export type RequestList = Wire<typeof requestList>

export const requestStep = z.object({
  id: z.int(),
  taskType: z.string(),
  label: z.string().optional(),
  attempt: z.int(),
  started: z.string(),
  ended: z.string(),
  outcome: z.string(),
})
export type RequestStep = Wire<typeof requestStep>

export const requestApproval = z.object({
  id: z.string(),
  label: z.string(),
  status: z.enum(['open', 'approved', 'denied', 'cancelled']),
  opened: z.string(),
  escalation: z.int(),
  approvers: z.array(z.string()),
  decision: decisionView.optional(),
})
export type RequestApproval = Wire<typeof requestApproval>

/** GET requests/{id}. */
export const requestDetails = requestSummary.extend({
  mayCancel: z.boolean().describe('Whether the caller can cancel the request now.'),
  failure: z
    .object({
      code: z.string(),
      text: z.string(),
    })
    .describe('Of a request that is on hold or has failed.')
    .optional(),
  retry: z
    .object({
      attempt: z.int().describe('The number of the next attempt.'),
      at: z.string(),
    })
    .describe('The current step failed and is tried again then.')
    .optional(),
  behind: z
    .object({
      id: z.string().optional(),
      label: z.string().optional(),
    })
    .describe('The request about the same user that is done first; empty where the caller cannot see that request.')
    .optional(),
  timeline: z.array(requestStep),
  approvals: z.array(requestApproval),
  messages: z.array(requestMessage).describe('Questions of approvers and answers, in order.'),
  mayAnswer: z.boolean().describe('Whether an approver waits for an answer of the caller.'),
  names: personNames.optional(),
})
export type RequestDetails = Wire<typeof requestDetails>

export const delegationPeriod = z.object({
  id: z.string(),
  deputy: z.string(),
  starts: z.string(),
  ends: z.string(),
})
export type DelegationPeriod = Wire<typeof delegationPeriod>

/** GET delegations. */
export const delegationList = z.object({
  delegations: z.array(delegationPeriod),
  represents: z.array(z.string()).describe('For whom the caller may decide now.'),
  names: personNames.optional(),
})
export type DelegationList = Wire<typeof delegationList>

/** PUT approvals/{id}; answered without a body. */
export interface ApprovalVoteBody {
  readonly approved: boolean | 'true' | 'false'
  /** The comment. */
  readonly reason?: string
  /** Rejects the decision if the approval has another version. */
  readonly version?: number
}

/** POST approvals/{id}/reassign; answered with 204. */
export interface ApprovalHandover {
  /** The login of the user who is to decide. */
  readonly to: string
  readonly reason?: string
  /** Refused if the approval has another version. */
  readonly version?: number
}

/** PUT approvals: one decision about several. */
export interface BulkVote {
  readonly approvals: readonly string[]
  readonly approved: boolean | 'true' | 'false'
  readonly reason?: string
}

/** POST delegations; answered with 201 and a DelegationPeriod. */
export interface NewDelegation {
  readonly deputy: string
  readonly starts: string
  readonly ends: string
}
