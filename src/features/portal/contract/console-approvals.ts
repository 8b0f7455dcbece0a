import * as z from 'zod'
import type { Wire } from '#kernel/wire.ts'
import { personNames } from './person-names.ts'

/** An open approval, as administrators see it. */
export const consoleApproval = z.object({
  id: z.string(),
  run: z.string().describe('The id of the run that waits for it.'),
  workflow: z.string(),
  label: z.string(),
  subject: z.string(),
  requestor: z.string(),
  caller: z.string().optional(),
  reason: z.string().optional(),
  opened: z.string(),
  escalation: z.int().describe('The number of escalations so far.'),
  version: z.int().describe('A reassignment names the one it was decided on.'),
  approvers: z.array(z.string()).describe('The logins of the users who may decide it, at most 10.'),
  hasMore: z.boolean().describe('There are more approvers.'),
  involvesCaller: z
    .boolean()
    .describe('The caller requested or submitted it, or is its subject, and so may not reassign it.'),
})
export type ConsoleApproval = Wire<typeof consoleApproval>

/** GET admin/approvals?workflow=&approver=&overdue=. */
export const consoleApprovals = z.object({
  approvals: z.array(consoleApproval).describe('Oldest first.'),
  next: z.string().optional(),
  names: personNames.optional(),
})
export type ConsoleApprovals = Wire<typeof consoleApprovals>

/** Answer of POST admin/approvals/{id}/reassign: who may decide it now. */
export const consoleReassigned = consoleApproval.pick({ id: true, version: true, approvers: true })
export type ConsoleReassigned = Wire<typeof consoleReassigned>

/** POST admin/approvals/{id}/reassign. */
export interface ConsoleReassignment {
  readonly version: number
  readonly to: string
  readonly reason: string
}
