import * as z from 'zod'
import { runStep } from '#features/portal/contract/main-admin.ts'
import { cancellation, runState } from '#features/portal/contract/main-requests.ts'

/** 200 and 202 of a call. */
export const startedRun = z.object({
  workflowId: z.string(),
  status: z.enum(['completed', 'accepted', 'waiting']),
  changes: z.int().describe('Audit entries that the run wrote; where it is completed').optional(),
})

/** GET {workflowId}: what the caller that started the run may see. */
export const runStatus = z.object({
  workflowId: z.string(),
  name: z.string().describe('The workflow'),
  status: runState,
  subject: z.string(),
  requestor: z.string(),
  reason: z.string().optional(),
  created: z.string(),
  updated: z.string(),
  ended: z.string().optional(),
  deadline: z.string().optional(),
  cancel: cancellation.optional(),
  failure: z.object({ task: z.string(), code: z.string(), text: z.string() }).optional(),
  timeline: z.array(runStep),
})

/** DELETE {workflowId}. */
export const endedRun = z.object({ workflowId: z.string(), status: z.string() })

/** RFC 9457. */
export const problem = z.object({
  type: z.string().describe('urn:gatehouse:error: and the error code'),
  title: z.string(),
  status: z.int(),
  detail: z.string().optional(),
  instance: z.string().describe('The request as the log knows it'),
  errors: z
    .array(z.object({ pointer: z.string(), detail: z.string() }))
    .describe('What is wrong with which part of the body')
    .optional(),
})
