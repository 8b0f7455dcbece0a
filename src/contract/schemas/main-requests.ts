import * as z from 'zod'
import { attributeValues } from './main.ts'

/** Secret values are left out. */
export const previewAttribute = z.object({
  name: z.string(),
  secret: z.boolean(),
  before: z.array(z.string()),
  after: z.array(z.string()),
})

/** A user or a group that is created, changed or deleted at a target. */
export const previewEntry = z.object({
  kind: z.enum(['user', 'group']),
  action: z.enum(['create', 'change', 'delete']),
  target: z.string(),
  name: z.string(),
  newName: z.string().describe('Where it is to have another name.').optional(),
  attributes: z.array(previewAttribute),
  joins: z.array(z.string()).describe('Groups of a user.'),
  leaves: z.array(z.string()),
  cut: z.boolean().describe('There is more than is listed here.'),
})

export const previewStep = z.union([
  previewEntry,
  z.object({
    kind: z.literal('end'),
    target: z.string(),
    of: z.enum(['user', 'group']),
    name: z.string(),
    expires: z.string(),
  }),
  z.object({
    kind: z.literal('mail'),
    recipient: z.string(),
    subject: z.string(),
  }),
  z.object({
    kind: z.literal('approval'),
    label: z.string(),
  }),
  z.object({
    kind: z.literal('wait'),
    until: z.string(),
  }),
  z.object({
    kind: z.literal('workflow'),
    name: z.string(),
    apart: z.boolean(),
  }),
  z.object({
    kind: z.literal('unforeseen'),
    task: z.string(),
    reason: z.string().optional(),
  }),
])

/**
 * What approving would do, in order, as far as the preview can show it. Steps after one of the kind `unforeseen`
 * may differ, and steps after an `approval` happen only if that approval is given too. Has no secrets. Times are
 * ISO 8601.
 */
export const changePreview = z.object({
  steps: z.array(previewStep),
  whole: z.boolean().describe('False if more steps follow than are listed.'),
})

/** Approvals, requests and deputies of the Main API. */
export const approvalSummary = z.object({
  workflow: z.string().describe('The request.'),
  approval: z.string(),
  label: z.string(),
  user: z.string().describe("The subject's login."),
  displayName: z.string(),
  requestor: z.string(),
  caller: z.string().describe("Who submitted it in the requester's name; absent where the requester did.").optional(),
  wfStart: z.int(),
  approvalStart: z.int(),
  wfName: z.string(),
  wfLabel: z.string(),
  wfDescription: z.string(),
  reason: z.string(),
  accessEnds: z.string().describe('When the access is to end, where the requester chose that.').optional(),
})

/** GET approvals?after=&limit=. */
export const approvalList = z.object({
  approvals: z.array(approvalSummary).describe('Oldest first.'),
  next: z.string().describe('The `after` of the following page; absent on the last one.').optional(),
})

export const decisionView = z.object({
  at: z.string(),
  by: z.string().optional(),
  onBehalfOf: z.string().optional(),
  comment: z.string().optional(),
})

/** GET approvals/{id}?changes=. Has no secrets. */
export const approvalDetails = approvalSummary.extend({
  userObj: z.object({
    userID: z.string(),
    isNew: z
      .boolean()
      .describe('A registration, or a user whom the directory does not have: the values are those of the request.'),
    groups: z.array(z.string()),
    requestReason: z.string(),
    attribs: z.record(z.string(), attributeValues).describe('By label.'),
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
  changes: changePreview
    .describe('Preview of the changes; only with `changes=true`, for approvers, if the portal shows previews.')
    .optional(),
})

/** The result by approval; `status` is the status that a single decision would return. */
export const bulkResults = z.object({
  results: z.record(
    z.string(),
    z.object({
      status: z.int(),
      text: z.string(),
      code: z.string().optional(),
    }),
  ),
})

export const runState = z.enum(['ready', 'running', 'waiting', 'incident', 'completed', 'failed', 'cancelled'])

export const requestSummary = z.object({
  id: z.string(),
  name: z.string(),
  label: z.string(),
  state: runState,
  subject: z.string(),
  requestor: z.string(),
  caller: z.string().describe("Who submitted it in the requester's name; absent where the requester did.").optional(),
  reason: z.string().optional(),
  created: z.string(),
  updated: z.string(),
  ended: z.string().optional(),
  deadline: z.string().optional(),
  accessEnds: z.string().describe('When the access is to end, where the requester chose that.').optional(),
  cancel: z
    .object({
      by: z.string(),
      reason: z.string().optional(),
    })
    .describe('Who requested the cancellation, and why.')
    .optional(),
})

/**
 * GET requests?state=&about=mine|me&after=&limit=: what the caller requested, or what others requested for the
 * caller.
 */
export const requestList = z.object({
  requests: z.array(requestSummary).describe('Latest first.'),
  next: z.string().optional(),
})

export const requestStep = z.object({
  id: z.int(),
  taskType: z.string(),
  label: z.string().optional(),
  attempt: z.int(),
  started: z.string(),
  ended: z.string(),
  outcome: z.string(),
})

export const requestApproval = z.object({
  id: z.string(),
  label: z.string(),
  status: z.enum(['open', 'approved', 'denied', 'cancelled']),
  opened: z.string(),
  escalation: z.int(),
  approvers: z.array(z.string()),
  decision: decisionView.optional(),
})

/** GET requests/{id}. */
export const requestDetails = requestSummary.extend({
  mayCancel: z.boolean().describe('Whether the caller can cancel the request now.'),
  failure: z
    .object({
      code: z.string(),
      text: z.string(),
    })
    .optional(),
  timeline: z.array(requestStep),
  approvals: z.array(requestApproval),
})

export const delegationPeriod = z.object({
  id: z.string(),
  deputy: z.string(),
  starts: z.string(),
  ends: z.string(),
})

/** GET delegations. */
export const delegationList = z.object({
  delegations: z.array(delegationPeriod),
  represents: z.array(z.string()).describe('For whom the caller may decide now.'),
})
