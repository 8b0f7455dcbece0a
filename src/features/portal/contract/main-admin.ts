import * as z from 'zod'
import type { Wire } from '#kernel/wire.ts'
import { cancellation, requestApproval, requestStep, runState } from './main-requests.ts'
import { personNames } from './person-names.ts'

/** A run that did not end within its call. */
export const adminRun = z.object({
  id: z.string(),
  name: z.string().describe('The workflow.'),
  definition: z.string().describe('The hash of the definition that the run follows.'),
  state: runState,
  subject: z.string(),
  requestor: z.string(),
  caller: z.string().optional(),
  reason: z.string().optional(),
  requestId: z.string().optional(),
  attempt: z.int(),
  fence: z.int().describe('An intervention names the one it was decided on.'),
  worker: z.string().optional(),
  due: z.string(),
  deadline: z.string().optional(),
  incident: z
    .object({
      task: z.string(),
      code: z.string(),
      message: z.string(),
      target: z.string().describe('The target that the task called last.').optional(),
      maySkip: z
        .boolean()
        .describe('False for an approval, and for a task that contains one. Absent if that is unknown.')
        .optional(),
    })
    .optional(),
  cancel: cancellation.optional(),
  touched: z.boolean().describe('A target may have been changed.'),
  involvesCaller: z
    .boolean()
    .describe('The caller requested or submitted it, or is its subject, and so may not retry, skip or cancel it.'),
  created: z.string(),
  updated: z.string(),
  ended: z.string().optional(),
})
export type AdminRun = Wire<typeof adminRun>

/** GET admin/incidents and admin/runs?state=&name=&subject=&requestor=&target=&unfinished=&from=&until=&limit=&after=. */
export const adminRuns = z.object({
  runs: z.array(adminRun).describe('Latest first.'),
  next: z.string().optional(),
  names: personNames.optional(),
})
export type AdminRuns = Wire<typeof adminRuns>

export const runStep = requestStep.extend({ number: z.int(), task: z.string() })

export const adminApproval = requestApproval.extend({
  version: z.int().describe('A reassignment names the one it was decided on.'),
  step: z.int().describe('The number of the step that waits for it.'),
})
export type AdminApproval = Wire<typeof adminApproval>

export const adminStep = runStep.extend({ error: z.string().optional() })
export type AdminStep = Wire<typeof adminStep>

/** GET admin/runs/{id}. */
export const adminRunDetails = adminRun.extend({
  definitions: z
    .record(z.string(), z.string())
    .describe(
      'The hashes of the definitions that the run follows, by workflow: its own, and of the workflows it can call.',
    ),
  timeline: z.array(adminStep),
  approvals: z.array(adminApproval).describe('Oldest first'),
  names: personNames.optional(),
})
export type AdminRunDetails = Wire<typeof adminRunDetails>

export const requestCounts = z.record(runState, z.int())
export type RequestCounts = Wire<typeof requestCounts>

export const approvalCounts = z.object({
  opened: z.int(),
  escalated: z.int().describe('How many of the opened approvals were escalated because no one decided.'),
  approved: z.int(),
  denied: z.int(),
  decisionMillis: z.number().describe('Median time from opening to decision.').optional(),
})
export type ApprovalCounts = Wire<typeof approvalCounts>

export const tokenCounts = z.object({ issued: z.int(), refused: z.int() })
export type TokenCounts = Wire<typeof tokenCounts>

export const scimCallCounts = z.object({
  answered: z.int().describe('With a status below 400.'),
  refused: z.int().describe('From 400 to 499.'),
  failed: z.int().describe('From 500 on.'),
})
export type ScimCallCounts = Wire<typeof scimCallCounts>

export const statisticsPart = z.object({
  from: z.string().describe('When it begins; it ends with the next one.'),
  requests: requestCounts.describe('By the time they began, with the state that they are in now.'),
  approvals: approvalCounts,
  tokens: z
    .object({
      sts: tokenCounts,
      issuers: tokenCounts,
    })
    .describe("By the token service, and by the gateway's own OpenID Connect issuers."),
  scim: scimCallCounts,
})
export type StatisticsPartView = Wire<typeof statisticsPart>

/** GET admin/statistics?from=&to=&by=hour|day. */
export const statistics = z.object({
  from: z.string(),
  to: z.string(),
  by: z.enum(['hour', 'day']),
  parts: z
    .array(statisticsPart)
    .describe('One for each hour or 24 hours since `from`, oldest first; the last one is cut off by `to`.'),
  decisionMillis: z.number().describe('The median of the whole time; absent where nothing was decided.').optional(),
  workflows: z
    .array(z.object({ name: z.string(), requests: requestCounts }))
    .describe('Those with most first, at most 10.'),
  scimClients: z.array(z.object({ gateway: z.string(), client: z.string(), calls: scimCallCounts })),
})
export type StatisticsView = Wire<typeof statistics>

export type AdminAction = 'retry' | 'skip' | 'cancel'

/** POST admin/runs/{id}/{retry|skip|cancel}; answered by an AdminRun. `retry` needs no reason. */
export interface AdminIntervention {
  readonly fence: number
  readonly reason?: string
  /** Only to retry a run that has no approver. */
  readonly approver?: string
}
